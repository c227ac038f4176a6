"""A timetable of keys: it returns each key at the time for which the caller has added it.

An entry needs only eight bytes.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator


class Wakeups:
    """Keys, grouped into time spans of length `width`, in the caller's unit of time.

    All keys of a span are returned together, so a key may be returned before its time. Then the caller must add it
    again. If a key was added at two times, it is returned at each of them.
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
