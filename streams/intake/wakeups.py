"""Whose turn it is: keys under the moments at which somebody wants to look at them, for eight bytes each."""

from __future__ import annotations

import heapq
from collections.abc import Iterator


class Wakeups:
    """Keys in spans of time; moments and `width` are of one unit.

    A key comes with all others of its span, so it may come early, and whoever asks puts it back. A key whose moment
    has changed since comes all the same, and more than once where it was added more than once.
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
