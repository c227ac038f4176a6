"""Since when nothing has come from each session: which silences are to be noted, and which sessions nobody needs.

Silence is measured by the monotonic clock: what matters is that nothing comes any more, whatever the messages' times
are. Whether a session is expired is decided by event time: the monotonic clock begins anew with every assignment,
and with a deploy a day nothing would ever be freed.
"""

from __future__ import annotations

import heapq
import itertools
import time
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass

from schemas.messages import LATEST_MS, Silence
from schemas.settings import MemorySettings
from tables.windows.short_term import Session, session_key

_Key = tuple[int, bytes]


@dataclass(slots=True)
class _Idle:
    """Since when nothing arrived from a session (monotonic seconds), and which silences are noted since.

    `day_ends` (epoch ms) is when a day is over of which something is to be summed up; 0: none. `ended`, `last_at` and
    `waits` (for the end of that day) are the session's own. `look_at` and `free_at` (monotonic seconds) are when it
    is looked at next, `day_at` (epoch ms) as well; None: it is in no heap.
    """

    number: int
    user_id: str
    session_id: str
    since: float = 0.0
    noted_gap: bool = False
    noted_idle: bool = False
    day_ends: int = 0
    ended: bool = False
    waits: bool = False
    last_at: int = 0
    look_at: float | None = None
    free_at: float | None = None
    day_at: int | None = None


class IdleTracker:
    """Knows when to look at which session next, so that nobody looks at all of them."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic, self._numbers = monotonic, itertools.count()
        self._gap = self._idle = 0.0  # until the settings are known, a session is looked at as soon as possible
        self.clear()

    def clear(self) -> None:
        self._sessions: dict[_Key, _Idle] = {}
        self._looks: list[tuple[float, int, _Key]] = []
        self._days: list[tuple[int, int, _Key]] = []
        self._frees: list[tuple[float, int, _Key]] = []

    def __len__(self) -> int:
        """How many sessions there are."""
        return len(self._sessions)

    def forget(self, partition: int, session: Session) -> None:
        """Nothing is known of the session any more."""
        self._sessions.pop((partition, session_key(session.user_id, session.session_id)), None)

    def seen(self, partition: int, session: Session) -> None:
        """Something arrived; what is closed or ended already needs no note of silence."""
        key = partition, session_key(session.user_id, session.session_id)
        idle = self._sessions.get(key)
        if idle is None:
            idle = self._sessions[key] = _Idle(next(self._numbers), session.user_id, session.session_id)
        idle.since = since = self._monotonic()
        idle.noted_gap, idle.noted_idle, idle.day_ends = not session.open, session.ended, session.day_ends
        idle.ended, idle.waits, idle.last_at = session.ended, session.day_ends > 0, session.last_at
        if not (idle.noted_gap and idle.noted_idle) and (idle.look_at is None or idle.look_at > since + self._gap):
            self._look_again(key, idle, since + self._gap)
        if idle.free_at is None:
            self._free_later(key, idle, since + self._idle)
        if idle.noted_idle and idle.day_ends and idle.day_at != idle.day_ends:
            self._await_day(key, idle)

    def due(
        self, memory: MemorySettings, session_of: Callable[[int, str, str], Session], clock_now: int
    ) -> list[Silence]:
        """The silences to write now; each is given once. A session that is over is also silent until its day is."""
        self._learn(memory)
        now = self._monotonic()
        found: dict[int, tuple[_Key, _Idle, float]] = {}
        for key, idle in self._looked_at(now):
            if not idle.noted_idle and now >= idle.since + memory.session_idle_seconds:
                idle.noted_gap = idle.noted_idle = True
                found[idle.number] = key, idle, memory.session_idle_seconds
            elif not idle.noted_gap and now >= idle.since + memory.exchange_gap_seconds:
                idle.noted_gap = True
                found[idle.number] = key, idle, memory.exchange_gap_seconds
        days_over = [(idle, idle.day_ends) for idle in self._days_over(clock_now, found)]
        silences = {idle.number: _until(idle, ends) for idle, ends in days_over}
        for key, idle, seconds in found.values():
            last_at = session_of(key[0], idle.user_id, idle.session_id).last_at
            if last_at:  # else nothing is known of it but silence: its messages are older than the log
                silences[idle.number] = _until(idle, int(min(last_at + seconds * 1000, LATEST_MS - 1)))
            if idle.noted_idle and idle.day_ends:
                self._await_day(key, idle)
        return [silence for _, silence in sorted(silences.items(), key=lambda one: one[0])]

    def expired(self, memory: MemorySettings, clock_now: int) -> list[tuple[int, str, str]]:
        """Sessions whose window has expired at `clock_now` (epoch ms); they are not named again.

        It has ended, the end of its day is noted, and nothing has come for as long as ends a session: what is read
        again after a restart is in by then. So is one from which nothing has come for longer than a window lasts.
        """
        self._learn(memory)
        now, lasts = self._monotonic(), memory.ttl_seconds + memory.session_idle_seconds
        gone: list[tuple[int, tuple[int, str, str]]] = []
        while self._frees and self._frees[0][0] <= now:
            free_at, number, key = heapq.heappop(self._frees)
            idle = self._sessions.get(key)
            if idle is None or idle.number != number or idle.free_at != free_at:
                continue
            idle.free_at = None
            calm_at, left = idle.since + memory.session_idle_seconds, idle.last_at + lasts * 1000 - clock_now
            over = not idle.last_at or (idle.ended and not idle.waits and left <= 0)
            if (now >= calm_at and over) or (idle.noted_idle and now > idle.since + lasts):
                del self._sessions[key]
                gone.append((number, (key[0], idle.user_id, idle.session_id)))
            else:
                again = min(now + min(memory.session_idle_seconds, max(left / 1000, 0)), idle.since + lasts)
                self._free_later(key, idle, max(calm_at if calm_at > now else again, now + 1))
        return [named for _, named in sorted(gone)]

    def _learn(self, memory: MemorySettings) -> None:
        self._idle = memory.session_idle_seconds
        self._gap = min(memory.exchange_gap_seconds, memory.session_idle_seconds)

    def _looked_at(self, now: float) -> Iterator[tuple[_Key, _Idle]]:
        """Sessions whose turn it is; each is looked at again when the next silence may be due."""
        while self._looks and self._looks[0][0] <= now:
            look_at, number, key = heapq.heappop(self._looks)
            idle = self._sessions.get(key)
            if idle is None or idle.number != number or idle.look_at != look_at:
                continue  # it is gone, or is looked at sooner
            idle.look_at = None
            yield key, idle
            if not idle.noted_idle or not idle.noted_gap:
                self._look_again(key, idle, idle.since + (self._idle if idle.noted_gap else self._gap))

    def _days_over(self, clock_now: int, others: Container[int]) -> Iterator[_Idle]:
        """Sessions that are over, and since now their day as well. `others` have something else to note first."""
        later = []
        while self._days and self._days[0][0] <= clock_now:
            day_ends, number, key = heapq.heappop(self._days)
            idle = self._sessions.get(key)
            if idle is None or idle.number != number or idle.day_at != day_ends:
                continue
            idle.day_at = None
            if number in others:
                later.append((key, idle))
            elif idle.noted_idle and idle.day_ends == day_ends:
                yield idle
                idle.day_ends = 0
        for key, idle in later:
            self._await_day(key, idle)

    def _look_again(self, key: _Key, idle: _Idle, at: float) -> None:
        idle.look_at = at
        heapq.heappush(self._looks, (at, idle.number, key))

    def _free_later(self, key: _Key, idle: _Idle, at: float) -> None:
        idle.free_at = at
        heapq.heappush(self._frees, (at, idle.number, key))

    def _await_day(self, key: _Key, idle: _Idle) -> None:
        if idle.day_ends and idle.day_at != idle.day_ends:
            idle.day_at = idle.day_ends
            heapq.heappush(self._days, (idle.day_ends, idle.number, key))


def _until(idle: _Idle, at: int) -> Silence:
    return Silence(user_id=idle.user_id, session_id=idle.session_id, timestamp=at)
