"""What time it is, in epoch milliseconds. The clock is passed in; no rule asks the system."""

from __future__ import annotations

import time
from typing import Literal, Protocol


def now_ms() -> int:
    """The system's time, in epoch milliseconds: for what is stamped when it is made, and decided on by no rule."""
    return time.time_ns() // 1_000_000


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


class EventClock:
    """The newest event time seen: for replays, demos and evaluation."""

    def __init__(self, start: int = 0) -> None:
        self._newest = start

    def now(self) -> int:
        return self._newest

    def observe(self, event_time: int) -> None:
        self._newest = max(self._newest, event_time)


def clock_of(kind: Literal["wall", "event"]) -> Clock:
    return WallClock() if kind == "wall" else EventClock()
