"""Idle tracker: measures each session's silence, and finds silences to record and sessions that have expired.

Silence is measured by the monotonic clock: it depends on when the last message arrived, not on the messages'
timestamps. Expiry is decided by event time, because a monotonic measurement starts over with every assignment: with
one deployment a day, no session would ever expire.

There is an entry for every session with a window, which may be millions. To save memory, each entry is packed into
one byte string.
"""

from __future__ import annotations

import heapq
import itertools
import struct
import time
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

import orjson

from schemas.conversations import Silence
from schemas.sessions import Session
from schemas.settings import MemorySettings
from schemas.times import LATEST_MS
from streams.intake.wakeups import Wakeups
from tables.windows.sessions import session_key

#: The length in bytes of the partition number at the start of a tracker key. The rest is the session's key.
_PARTITION_BYTES: Final = 4
#: The binary format of a tracker entry: the fields of `_Idle`, in order.
_PACKED: Final = struct.Struct("<Qdddqqq????")
#: The index of `last_at` in the fields of `_Idle`.
_LAST_AT: Final = 6
#: Maximum number of sessions that `newest` looks at, because there may be millions.
LOOKED_AT: Final = 5_000
#: The value of a time field that is not set.
_NEVER: Final = -1


class QuietSession(NamedTuple):
    """A session in the windows, and the event time of its newest message (epoch ms)."""

    partition: int
    user_id: str
    session_id: str
    last_at: int


@dataclass(slots=True)
class _Idle:
    """The state of one session in the tracker: its last activity, its recorded silences, and its next checks.

    `since` is the arrival of the session's last record (monotonic seconds). The session is next checked at `look_at`
    for silence, at `free_at` for expiry (monotonic seconds), and at `day_at` for the end of its day (epoch ms).
    `day_ends` (epoch ms) is the end of a day that needs a summary; 0 if no day needs one. `noted_gap` is true if no
    silence record is needed to close the open exchange, `noted_idle` if none is needed to end the session. `ended`
    and `last_at` are copied from the session. `waits` is true if a day still needed a summary when the session's last
    record arrived.
    """

    number: int
    since: float = 0.0
    look_at: float = _NEVER
    free_at: float = _NEVER
    day_at: int = _NEVER
    day_ends: int = 0
    last_at: int = 0
    noted_gap: bool = False
    noted_idle: bool = False
    ended: bool = False
    waits: bool = False

    def packed(self) -> bytes:
        return _PACKED.pack(
            self.number,
            self.since,
            self.look_at,
            self.free_at,
            self.day_at,
            self.day_ends,
            self.last_at,
            self.noted_gap,
            self.noted_idle,
            self.ended,
            self.waits,
        )


class IdleTracker:
    """Finds silent and expired sessions. Each session has a time for its next check, so a call checks only a few."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic, self._numbers = monotonic, itertools.count()
        self._gap = self._idle = 0.0  # until the settings are known, a session is checked as soon as possible
        self.clear()

    def clear(self) -> None:
        self._sessions: dict[bytes, bytes] = {}
        self._looks, self._frees, self._days = Wakeups(1), Wakeups(10), Wakeups(1_000)

    def __len__(self) -> int:
        """The number of tracked sessions."""
        return len(self._sessions)

    def newest(self, most: int) -> list[QuietSession]:
        """Return the `most` sessions with the newest messages, newest first.

        Only the `LOOKED_AT` sessions that were added last are considered.
        """
        began_last = itertools.islice(reversed(self._sessions.items()), LOOKED_AT)
        moments = ((_PACKED.unpack(packed)[_LAST_AT], key) for key, packed in began_last)
        return [QuietSession(*_named(key), at) for at, key in heapq.nlargest(most, moments) if at]

    def forget(self, partition: int, session: Session) -> None:
        """Forget the session."""
        self._sessions.pop(_key(partition, session), None)

    def seen(self, partition: int, session: Session) -> None:
        """Note that a record of the session has arrived.

        If no exchange is open, no silence needs to be recorded to close one. If the session has ended, no silence
        needs to be recorded to end it.
        """
        key = _key(partition, session)
        packed = self._sessions.get(key)
        if packed is None:
            number, look_at, free_at, day_at = next(self._numbers), float(_NEVER), float(_NEVER), _NEVER
        else:
            number, _, look_at, free_at, day_at, *_ = _PACKED.unpack(packed)
        since, quiet, ended, day_ends = self._monotonic(), not session.open, session.ended, session.day_ends
        if not (quiet and ended) and (look_at == _NEVER or look_at > since + self._gap):
            look_at = since + self._gap
            self._looks.add(look_at, key)
        if free_at == _NEVER:
            free_at = since + self._idle
            self._frees.add(free_at, key)
        if ended and day_ends and day_at != day_ends:
            day_at = day_ends
            self._days.add(day_at, key)
        self._sessions[key] = _PACKED.pack(
            number, since, look_at, free_at, day_at, day_ends, session.last_at, quiet, ended, ended, day_ends > 0
        )

    def due(
        self, memory: MemorySettings, session_of: Callable[[int, str, str], Session], clock_now: int
    ) -> list[Silence]:
        """Return the silence records to write now. Each silence record is returned only once.

        An ended session gets one more silence record when its day ends.
        """
        self._learn(memory)
        found = {idle.number: (key, seconds) for key, idle, seconds in self._silent(memory)}
        silences = {idle.number: _until(key, ends) for key, idle, ends in self._days_over(clock_now, found)}
        for number, (key, seconds) in found.items():
            last_at = session_of(*_named(key)).last_at
            if last_at:  # it is 0 if the log has only silence records of the session: its messages were deleted
                silences[number] = _until(key, int(min(last_at + seconds * 1000, LATEST_MS - 1)))
            idle = self._known(key)
            if idle is not None and idle.noted_idle and idle.day_ends:
                self._await_day(key, idle)
                self._sessions[key] = idle.packed()
        return [silence for _, silence in sorted(silences.items(), key=lambda one: one[0])]

    def expired(self, memory: MemorySettings, clock_now: int) -> list[tuple[int, str, str]]:
        """Return the sessions whose window has expired at `clock_now` (epoch ms), each once.

        A session expires if it has ended, the end of its day is recorded, its window is older than its time to live,
        and no record has arrived for `session_idle_seconds`. This delay leaves time for records that are read again
        after a restart. A silent session also expires if no record has arrived for the time to live of a window plus
        `session_idle_seconds`, even if its window has not expired in event time.
        """
        self._learn(memory)
        now, lasts = self._monotonic(), memory.ttl_seconds + memory.session_idle_seconds
        gone: list[tuple[int, tuple[int, str, str]]] = []
        for key in self._frees.until(now):
            idle = self._known(key)
            if idle is None or idle.free_at == _NEVER:
                continue
            if idle.free_at > now:
                self._frees.add(idle.free_at, key)
                continue
            calm_at, left = idle.since + memory.session_idle_seconds, idle.last_at + lasts * 1000 - clock_now
            over = not idle.last_at or (idle.ended and not idle.waits and left <= 0)
            if (now >= calm_at and over) or (idle.noted_idle and now > idle.since + lasts):
                del self._sessions[key]
                gone.append((idle.number, _named(key)))
            else:
                again = min(now + min(memory.session_idle_seconds, max(left / 1000, 0)), idle.since + lasts)
                self._free_later(key, idle, max(calm_at if calm_at > now else again, now + 1))
                self._sessions[key] = idle.packed()
        return [named for _, named in sorted(gone)]

    def _learn(self, memory: MemorySettings) -> None:
        self._idle = memory.session_idle_seconds
        self._gap = min(memory.exchange_gap_seconds, memory.session_idle_seconds)

    def _silent(self, memory: MemorySettings) -> Iterator[tuple[bytes, _Idle, float]]:
        """Yield each session whose silence has reached a limit, with that limit (seconds).

        Also schedule the next check of each session that needs one.
        """
        now = self._monotonic()
        for key in self._looks.until(now):
            idle = self._known(key)
            if idle is None or idle.look_at == _NEVER:
                continue
            if idle.look_at > now:
                self._looks.add(idle.look_at, key)
                continue
            idle.look_at = _NEVER
            over = 0.0
            if not idle.noted_idle and now >= idle.since + memory.session_idle_seconds:
                idle.noted_gap = idle.noted_idle = True
                over = memory.session_idle_seconds
            elif not idle.noted_gap and now >= idle.since + memory.exchange_gap_seconds:
                idle.noted_gap = True
                over = memory.exchange_gap_seconds
            if not idle.noted_idle or not idle.noted_gap:
                self._look_again(key, idle, idle.since + (self._idle if idle.noted_gap else self._gap))
            self._sessions[key] = idle.packed()
            if over:
                yield key, idle, over

    def _days_over(self, clock_now: int, others: Container[int]) -> Iterator[tuple[bytes, _Idle, int]]:
        """Yield ended sessions whose day has ended, with the end of the day (epoch ms).

        Sessions whose numbers are in `others` are skipped, because they get another silence record now, which must be
        written before the end of the day.
        """
        for key in self._days.until(clock_now):
            idle = self._known(key)
            if idle is None or idle.day_at == _NEVER:
                continue
            if idle.day_at > clock_now:
                self._days.add(idle.day_at, key)
                continue
            day_ends, idle.day_at = idle.day_at, _NEVER
            if idle.number in others:
                self._await_day(key, idle)
            elif idle.noted_idle and idle.day_ends == day_ends:
                idle.day_ends = 0
                yield key, idle, day_ends
            self._sessions[key] = idle.packed()

    def _known(self, key: bytes) -> _Idle | None:
        packed = self._sessions.get(key)
        return None if packed is None else _Idle(*_PACKED.unpack(packed))

    def _look_again(self, key: bytes, idle: _Idle, at: float) -> None:
        idle.look_at = at
        self._looks.add(at, key)

    def _free_later(self, key: bytes, idle: _Idle, at: float) -> None:
        idle.free_at = at
        self._frees.add(at, key)

    def _await_day(self, key: bytes, idle: _Idle) -> None:
        if idle.day_ends and idle.day_at != idle.day_ends:
            idle.day_at = idle.day_ends
            self._days.add(idle.day_ends, key)


def _key(partition: int, session: Session) -> bytes:
    return partition.to_bytes(_PARTITION_BYTES, "big") + session_key(session.user_id, session.session_id)


def _named(key: bytes) -> tuple[int, str, str]:
    """Return the partition, user id and session id from a tracker key."""
    user_id, session_id = orjson.loads(key[_PARTITION_BYTES:])
    return int.from_bytes(key[:_PARTITION_BYTES], "big"), user_id, session_id


def _until(key: bytes, at: int) -> Silence:
    _, user_id, session_id = _named(key)
    return Silence(user_id=user_id, session_id=session_id, timestamp=at)
