"""A timetable: keys by the moments at which their owner wants to look at them, for eight bytes each."""

from __future__ import annotations

import heapq
from collections.abc import Iterator


class Wakeups:
    """Keys in spans of time; moments and `width` are in the same unit.

    All keys of a span come together, so a key may come early; the caller then adds it again. A key whose moment has
    changed since also comes at its former one, and a key that was added more than once comes more than once.
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
        """Take out the keys of all spans that have begun; what is added meanwhile comes the next time."""
        begun = list[list[bytes]]()
        while self._order and self._order[0] * self._width <= now:
            begun.append(self._spans.pop(heapq.heappop(self._order)))
        for keys in begun:
            yield from keys
