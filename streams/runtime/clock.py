"""Clocks that return the time in epoch ms. Rules get a clock as argument, and never ask the system for the time."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal, Protocol

from schemas.times import SKEW_MS, now_ms


def ingested(appended: int | None, now: int) -> int:
    """Return the time at which a record was appended to the log (epoch ms).

    `appended` is the record's Kafka timestamp, and `now` the time at which the record was read. A producer with a
    wrong clock may have set the timestamp. So return `now` if the timestamp is missing, or if it is later than `now`.
    """
    return appended if appended is not None and 0 <= appended < now else now


class Clock(Protocol):
    """The clock by which memories age, and windows and notes expire."""

    def now(self) -> int:
        """The present time in epoch ms."""

    def passed(self) -> int:
        """A time in epoch ms that is certainly not in the future, even if the system's clock is wrong.

        Use it for actions that cannot be undone, such as removals.
        """

    def observe(self, event_time: int) -> None:
        """Note that an event of this time (epoch ms) was seen."""


#: The maximum time in ms by which an event may move `EventClock` ahead of the system's time. If an event is further
#: ahead, its date must be wrong.
AHEAD_MS = 86_400_000
#: The time in ms after which a forward jump of the system's clock is accepted as correct. If the clock stays ahead
#: for so long, it was probably slow before the jump.
STAYS_AHEAD_MS = 3_600_000


def elapsed_ms() -> int:
    """The milliseconds since an arbitrary moment, by a clock that cannot be set.

    If the system has `CLOCK_BOOTTIME`, the time while the machine sleeps is included.
    """
    return time.clock_gettime_ns(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)) // 1_000_000


class WallClock:
    """The system's time.

    The system's clock may be ahead of the real time for a while, even when this process starts. So `passed` returns
    the time of the newest event, plus the time that has elapsed since `passed` first used this event. It also ignores
    forward jumps of the system's clock (see `_steady`).
    """

    def __init__(self, wall: Callable[[], int] = now_ms, elapsed: Callable[[], int] = elapsed_ms) -> None:
        self._wall, self._elapsed = wall, elapsed
        self._offset = wall() - elapsed()
        self._ahead_since: int | None = None
        #: The time of the newest event (epoch ms), the time of the newest event that `passed` has used (epoch ms),
        #: and the `elapsed` time (ms) at which `passed` first used that event. All are 0 before the first event.
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
        """Note the event's time for `passed`. Events do not change `now`."""
        if event_time > self._newest:
            self._newest = event_time

    def _steady(self) -> int:
        """Return the wall time in epoch ms, but ignore jumps ahead.

        If the clock stays ahead by more than `SKEW_MS` for longer than `STAYS_AHEAD_MS`, its time is accepted.
        """
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
    """A clock whose time is that of the newest event seen. It is for replays, demos and evaluation.

    An event moves the clock at most one day ahead of the system's time. Otherwise one message with a date in 2099
    would age all users' memories by decades, and this could not be undone.
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
