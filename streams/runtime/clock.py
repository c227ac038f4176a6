"""Clocks, in epoch milliseconds. A clock is passed in; no rule asks the system for the time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal, Protocol

from schemas.times import SKEW_MS, now_ms


def ingested(appended: int | None, now: int) -> int:
    """Return when a record was appended to the log, in epoch ms: its Kafka timestamp, if that can be true.

    A producer's clock may have set it, so a timestamp after `now`, when the record was read, is replaced by `now`.
    """
    return appended if appended is not None and 0 <= appended < now else now


class Clock(Protocol):
    """The lifecycle's *now*."""

    def now(self) -> int:
        """Epoch milliseconds."""

    def passed(self) -> int:
        """Epoch milliseconds that have surely passed: use it for what cannot be undone, such as removals."""

    def observe(self, event_time: int) -> None:
        """Note that an event of this time (epoch ms) was seen."""


#: How far beyond the system's time an event may move the clock (ms): an event further ahead has a wrong date.
AHEAD_MS = 86_400_000
#: A clock that jumped ahead and stays there for so long (ms) is right: it was behind before.
STAYS_AHEAD_MS = 3_600_000


def elapsed_ms() -> int:
    """Milliseconds since some moment, by a clock that cannot be set; the machine's sleep counts where supported."""
    return time.clock_gettime_ns(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)) // 1_000_000


class WallClock:
    """The system's time.

    It may be set ahead for a moment. So `passed` advances only by the time since the process began, and since the
    newest event that was seen: a process may begin while the clock is ahead.
    """

    def __init__(self, wall: Callable[[], int] = now_ms, elapsed: Callable[[], int] = elapsed_ms) -> None:
        self._wall, self._elapsed = wall, elapsed
        self._offset = wall() - elapsed()
        self._ahead_since: int | None = None
        #: The newest event's time; its value when `passed` last saw it rise, and when. 0 before the first event.
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
        """Events do not move the wall clock, but they show what time has passed."""
        if event_time > self._newest:
            self._newest = event_time

    def _steady(self) -> int:
        """Return the wall time, without what the clock was set ahead in the last hour."""
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

    An event more than a day ahead counts as one day ahead: otherwise one message dated 2099 would age all users'
    memories by a lifetime, for good.
    """

    def __init__(self, start: int = 0, wall: Callable[[], int] = now_ms) -> None:
        self._newest, self._wall = start, wall

    def now(self) -> int:
        return self._newest

    def passed(self) -> int:
        return self._newest

    def go_to(self, moment: int) -> None:
        """Advance the clock to any moment (epoch ms), to see the state at that time."""
        self._newest = max(self._newest, moment)

    def observe(self, event_time: int) -> None:
        if event_time > self._newest:
            self._newest = max(self._newest, min(event_time, self._wall() + AHEAD_MS))


def clock_of(kind: Literal["wall", "event"]) -> Clock:
    return WallClock() if kind == "wall" else EventClock()
