"""Timetable of keys. Each key has a time at which the caller wants to look at it. An entry needs eight bytes."""

from __future__ import annotations

import heapq
from collections.abc import Iterator


class Wakeups:
    """Keys grouped into spans of time. A span is `width` long, in the unit of the times.

    All keys of a span are returned together, so a key may be returned before its time. Then the caller adds it again.
    If a key's time has changed, the key is also returned at its old time. A key that was added twice is returned
    twice.
    """

    def __init__(self, width: int) -> None:
        self._width = width
        self._spans: dict[int, list[bytes]] = {}
        self._order: list[int] = []

    def add(self, at: float, key: bytes) -> None:
        span = int(at // self._width)
        keys = self._spans.get(span)
        if keys is None:
            self._spans[span] = [key]
            heapq.heappush(self._order, span)
        else:
            keys.append(key)

    def until(self, now: float) -> Iterator[bytes]:
        """Remove and yield the keys of all spans that have begun at `now`.

        Keys that are added during the iteration are left for the next call.
        """
        begun = list[list[bytes]]()
        while self._order and self._order[0] * self._width <= now:
            begun.append(self._spans.pop(heapq.heappop(self._order)))
        for keys in begun:
            yield from keys
