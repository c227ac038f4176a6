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
from tables.short_term import Session, session_key

_Key = tuple[int, bytes]


@dataclass(slots=True)
class _Quiet:
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


class QuietSessions:
    """Knows when to look at which session next, so that nobody looks at all of them."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic, self._numbers = monotonic, itertools.count()
        self._gap = self._idle = 0.0  # until the settings are known, a session is looked at as soon as possible
        self.clear()

    def clear(self) -> None:
        self._sessions: dict[_Key, _Quiet] = {}
        self._looks: list[tuple[float, int, _Key]] = []
        self._days: list[tuple[int, int, _Key]] = []
        self._frees: list[tuple[float, int, _Key]] = []

    def forget(self, partition: int, session: Session) -> None:
        """Nothing is known of the session any more."""
        self._sessions.pop((partition, session_key(session.user_id, session.session_id)), None)

    def heard(self, partition: int, session: Session) -> None:
        """Something arrived; what is closed or ended already needs no note of silence."""
        key = partition, session_key(session.user_id, session.session_id)
        quiet = self._sessions.get(key)
        if quiet is None:
            quiet = self._sessions[key] = _Quiet(next(self._numbers), session.user_id, session.session_id)
        quiet.since = since = self._monotonic()
        quiet.noted_gap, quiet.noted_idle, quiet.day_ends = not session.open, session.ended, session.day_ends
        quiet.ended, quiet.waits, quiet.last_at = session.ended, session.day_ends > 0, session.last_at
        if not (quiet.noted_gap and quiet.noted_idle) and (
            quiet.look_at is None or quiet.look_at > since + self._gap
        ):
            self._look_again(key, quiet, since + self._gap)
        if quiet.free_at is None:
            self._free_later(key, quiet, since + self._idle)
        if quiet.noted_idle and quiet.day_ends and quiet.day_at != quiet.day_ends:
            self._await_day(key, quiet)

    def due(
        self, memory: MemorySettings, session_of: Callable[[int, str, str], Session], clock_now: int
    ) -> list[Silence]:
        """The silences to write now; each is given once. A session that is over is also silent until its day is."""
        self._learn(memory)
        now = self._monotonic()
        found: dict[int, tuple[_Key, _Quiet, float]] = {}
        for key, quiet in self._looked_at(now):
            if not quiet.noted_idle and now >= quiet.since + memory.session_idle_seconds:
                quiet.noted_gap = quiet.noted_idle = True
                found[quiet.number] = key, quiet, memory.session_idle_seconds
            elif not quiet.noted_gap and now >= quiet.since + memory.exchange_gap_seconds:
                quiet.noted_gap = True
                found[quiet.number] = key, quiet, memory.exchange_gap_seconds
        days_over = [(quiet, quiet.day_ends) for quiet in self._days_over(clock_now, found)]
        silences = {quiet.number: _until(quiet, ends) for quiet, ends in days_over}
        for key, quiet, seconds in found.values():
            last_at = session_of(key[0], quiet.user_id, quiet.session_id).last_at
            if last_at:  # else nothing is known of it but silence: its messages are older than the log
                silences[quiet.number] = _until(quiet, int(min(last_at + seconds * 1000, LATEST_MS - 1)))
            if quiet.noted_idle and quiet.day_ends:
                self._await_day(key, quiet)
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
            quiet = self._sessions.get(key)
            if quiet is None or quiet.number != number or quiet.free_at != free_at:
                continue
            quiet.free_at = None
            calm_at, left = quiet.since + memory.session_idle_seconds, quiet.last_at + lasts * 1000 - clock_now
            over = not quiet.last_at or (quiet.ended and not quiet.waits and left <= 0)
            if (now >= calm_at and over) or (quiet.noted_idle and now > quiet.since + lasts):
                del self._sessions[key]
                gone.append((number, (key[0], quiet.user_id, quiet.session_id)))
            else:
                again = min(now + min(memory.session_idle_seconds, max(left / 1000, 0)), quiet.since + lasts)
                self._free_later(key, quiet, max(calm_at if calm_at > now else again, now + 1))
        return [named for _, named in sorted(gone)]

    def _learn(self, memory: MemorySettings) -> None:
        self._idle = memory.session_idle_seconds
        self._gap = min(memory.exchange_gap_seconds, memory.session_idle_seconds)

    def _looked_at(self, now: float) -> Iterator[tuple[_Key, _Quiet]]:
        """Sessions whose turn it is; each is looked at again when the next silence may be due."""
        while self._looks and self._looks[0][0] <= now:
            look_at, number, key = heapq.heappop(self._looks)
            quiet = self._sessions.get(key)
            if quiet is None or quiet.number != number or quiet.look_at != look_at:
                continue  # it is gone, or is looked at sooner
            quiet.look_at = None
            yield key, quiet
            if not quiet.noted_idle or not quiet.noted_gap:
                self._look_again(key, quiet, quiet.since + (self._idle if quiet.noted_gap else self._gap))

    def _days_over(self, clock_now: int, others: Container[int]) -> Iterator[_Quiet]:
        """Sessions that are over, and since now their day as well. `others` have something else to note first."""
        later = []
        while self._days and self._days[0][0] <= clock_now:
            day_ends, number, key = heapq.heappop(self._days)
            quiet = self._sessions.get(key)
            if quiet is None or quiet.number != number or quiet.day_at != day_ends:
                continue
            quiet.day_at = None
            if number in others:
                later.append((key, quiet))
            elif quiet.noted_idle and quiet.day_ends == day_ends:
                yield quiet
                quiet.day_ends = 0
        for key, quiet in later:
            self._await_day(key, quiet)

    def _look_again(self, key: _Key, quiet: _Quiet, at: float) -> None:
        quiet.look_at = at
        heapq.heappush(self._looks, (at, quiet.number, key))

    def _free_later(self, key: _Key, quiet: _Quiet, at: float) -> None:
        quiet.free_at = at
        heapq.heappush(self._frees, (at, quiet.number, key))

    def _await_day(self, key: _Key, quiet: _Quiet) -> None:
        if quiet.day_ends and quiet.day_at != quiet.day_ends:
            quiet.day_at = quiet.day_ends
            heapq.heappush(self._days, (quiet.day_ends, quiet.number, key))


def _until(quiet: _Quiet, at: int) -> Silence:
    return Silence(user_id=quiet.user_id, session_id=quiet.session_id, timestamp=at)
