"""What time it is, in epoch milliseconds. The clock is passed in; no rule asks the system."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal, Protocol

from schemas.times import SKEW_MS, now_ms


def ingested(appended: int | None, now: int) -> int:
    """When a record came into the log, in epoch ms: its Kafka timestamp, where it has one that can be true.

    A producer's clock may have set it; but nothing was in the log after it was read, which is `now`.
    """
    return appended if appended is not None and 0 <= appended < now else now


class Clock(Protocol):
    """The lifecycle's *now*."""

    def now(self) -> int:
        """Epoch milliseconds."""

    def passed(self) -> int:
        """Epoch milliseconds that have passed for sure: as of then goes what cannot come back."""

    def observe(self, event_time: int) -> None:
        """An event of that time (epoch ms) was seen."""


#: How far beyond the system's time an event may move the clock (ms): what lies further ahead has a wrong date.
AHEAD_MS = 86_400_000
#: A clock that went ahead and has stayed there for so long (ms) is right: it was behind before.
STAYS_AHEAD_MS = 3_600_000


def elapsed_ms() -> int:
    """Milliseconds since some moment, by a clock that cannot be set; a machine's sleep counts where that is known."""
    return time.clock_gettime_ns(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)) // 1_000_000


class WallClock:
    """The system's time.

    It may be set ahead for a moment. So `passed` goes by no more than has passed since the process began, and since
    the newest event that was seen: a process may begin while the clock is ahead.
    """

    def __init__(self, wall: Callable[[], int] = now_ms, elapsed: Callable[[], int] = elapsed_ms) -> None:
        self._wall, self._elapsed = wall, elapsed
        self._offset = wall() - elapsed()
        self._ahead_since: int | None = None
        #: The newest event's time; what it was at the last look, and when that was. Before the first nothing passes.
        self._newest, self._seen, self._seen_at = 0, 0, 0

    def now(self) -> int:
        return self._wall()

    def passed(self) -> int:
        steady, elapsed = self._steady(), self._elapsed()
        seen = min(self._newest, steady)
        if seen > self._seen:
            self._seen, self._seen_at = seen, elapsed
        return min(steady, self._seen + elapsed - self._seen_at) if self._seen else 0

    def observe(self, event_time: int) -> None:
        """Events do not move the wall clock; they say what has passed."""
        if event_time > self._newest:
            self._newest = event_time

    def _steady(self) -> int:
        """The wall's time, but for what it was set ahead in the last hour."""
        wall, elapsed = self._wall(), self._elapsed()
        if wall <= self._offset + elapsed + SKEW_MS:
            self._ahead_since = None
            return min(wall, self._offset + elapsed)
        if self._ahead_since is None:
            self._ahead_since = elapsed
        if elapsed - self._ahead_since > STAYS_AHEAD_MS:
            self._offset, self._ahead_since = wall - elapsed, None
        return self._offset + elapsed


class EventClock:
    """The newest event time seen: for replays, demos and evaluation.

    An event of a later day than tomorrow counts as one of tomorrow: one message that is dated 2099 would make
    everybody's memories a lifetime older, for good.
    """

    def __init__(self, start: int = 0, wall: Callable[[], int] = now_ms) -> None:
        self._newest, self._wall = start, wall

    def now(self) -> int:
        return self._newest

    def passed(self) -> int:
        return self._newest

    def go_to(self, moment: int) -> None:
        """Advance the clock to a moment (epoch ms), however far ahead, to see the state at that time."""
        self._newest = max(self._newest, moment)

    def observe(self, event_time: int) -> None:
        if event_time > self._newest:
            self._newest = max(self._newest, min(event_time, self._wall() + AHEAD_MS))


def clock_of(kind: Literal["wall", "event"]) -> Clock:
    return WallClock() if kind == "wall" else EventClock()
