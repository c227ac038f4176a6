"""What time it is, in epoch milliseconds. The clock is passed in; no rule asks the system."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal, Protocol


def now_ms() -> int:
    """The system's time, in epoch milliseconds: for what is stamped when it is made, and decided on by no rule."""
    return time.time_ns() // 1_000_000


def ingested(appended: int | None, now: int) -> int:
    """When a record came into the log, in epoch ms: its Kafka timestamp, where it has one that can be true.

    A producer's clock may have set it; but nothing was in the log after it was read, which is `now`.
    """
    return appended if appended is not None and 0 <= appended < now else now


class Clock(Protocol):
    """The lifecycle's *now*."""

    def now(self) -> int:
        """Epoch milliseconds."""

    def observe(self, event_time: int) -> None:
        """An event of that time (epoch ms) was seen."""


class WallClock:
    """The system's time."""

    def now(self) -> int:
        return now_ms()

    def observe(self, event_time: int) -> None:
        """Events do not move the wall clock."""


#: How far beyond the system's time an event may move the clock (ms): what lies further ahead has a wrong date.
AHEAD_MS = 86_400_000


class EventClock:
    """The newest event time seen: for replays, demos and evaluation.

    An event of a later day than tomorrow counts as one of tomorrow: one message that is dated 2099 would make
    everybody's memories a lifetime older, for good.
    """

    def __init__(self, start: int = 0, wall: Callable[[], int] = now_ms) -> None:
        self._newest, self._wall = start, wall

    def now(self) -> int:
        return self._newest

    def go_to(self, moment: int) -> None:
        """Somebody says what time it is (epoch ms), however far ahead: what would be, then."""
        self._newest = max(self._newest, moment)

    def observe(self, event_time: int) -> None:
        if event_time > self._newest:
            self._newest = max(self._newest, min(event_time, self._wall() + AHEAD_MS))


def clock_of(kind: Literal["wall", "event"]) -> Clock:
    return WallClock() if kind == "wall" else EventClock()
