"""Sessions: one small row each, found by user, and ordered by the time of their last message.

A search asks for recent messages. It reads only the most recently active sessions: for users who searched lately, a
cache has the time of each session's last message, and follows the changes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Final, NamedTuple

import msgspec

from schemas.exchanges import Exchange, Message
from tables.windows.compact_json import compact_json, encode_row
from tables.windows.kept_rows import KeptRows
from tables.windows.resident import Derived, Resident
from tables.windows.rows import Change
from tables.windows.rows_by_user import RowsByUser, beginning_of


class Session(NamedTuple):
    """A session's window without the text of its closed exchanges.

    The window has the exchanges `first <= seq < next` except the `missing` ones, whose messages were split into
    exchanges again; `left_at` is the time of the newest message that left it. `pending` are the exchanges not yet
    evaluated for promotion; `asked` are those with a requested rating: they are kept until it is known, even after
    they left the window. `exchanges` counts exchanges since the session began, `offset` is the newest source record
    that is included. `said` counts user messages since the last summary, which covered the messages up to
    `summed_up`; the day of the later messages ends at `day_ends`. `lead` is the most that a message was dated ahead
    of its record (ms).

    For exchanges `known <= seq < first`, and for the missing ones, rows keep the message ids, so repeated messages
    are recognized. Messages dated up to `horizon` are recognized without a row: they were read before, or forgotten.
    Times are epoch milliseconds of event time.
    """

    user_id: str
    session_id: str
    offset: int = -1
    last_at: int = 0
    open: tuple[Message, ...] = ()
    first: int = 0
    next: int = 0
    missing: tuple[int, ...] = ()
    left_at: int = 0
    pending: tuple[int, ...] = ()
    asked: tuple[int, ...] = ()
    exchanges: int = 0
    ended: bool = False
    said: int = 0
    summed_up: int = 0
    day_ends: int = 0
    lead: int = 0
    known: int = 0
    horizon: int = 0

    @property
    def window(self) -> Sequence[int]:
        """The numbers of the exchanges in the window, oldest first."""
        whole = range(self.first, self.next)
        return [seq for seq in whole if seq not in self.missing] if self.missing else whole

    @property
    def named(self) -> Collection[int]:
        """The numbers of all exchanges that the session keeps: in the window, or waiting for a rating."""
        return {*self.window, *self.asked} if self.asked or self.missing else self.window

    @property
    def emptied(self) -> Collection[int]:
        """The numbers of exchanges that may have a row of message ids only, even while one awaits its rating."""
        return {*range(self.known, self.first), *self.missing}

    def without(self, seqs: Collection[int]) -> Session:
        """The session without these closed exchanges."""
        missing = {*self.missing, *(seq for seq in seqs if seq >= self.first)}
        first = self.first
        while first in missing:
            missing.remove(first)
            first += 1
        return self._replace(
            first=first,
            missing=tuple(sorted(missing)),
            pending=tuple(seq for seq in self.pending if seq not in seqs),
            asked=tuple(seq for seq in self.asked if seq not in seqs),
        )

    @property
    def open_exchange(self) -> Exchange:
        """The messages since the last exchange closed, as an exchange."""
        return Exchange(self.next, self.open)


@lru_cache(maxsize=16_384)
def session_key(user_id: str, session_id: str) -> bytes:
    return compact_json((user_id, session_id))


def encode_session(session: Session) -> bytes:
    # The last fields are left out where they are 0: most sessions are short, and few messages are dated ahead.
    if session.horizon:
        fields = tuple(session)
    elif session.known:
        fields = session[:-1]
    elif session.lead:
        fields = session[:-2]
    else:
        fields = session[:-3]
    return encode_row(fields, session.open)


decode_session: Final = msgspec.json.Decoder(Session).decode


class _Spoken(msgspec.Struct, array_like=True):
    """The first fields of a session's row."""

    user_id: str
    session_id: str
    offset: int
    last_at: int


_decode_beginning: Final = msgspec.json.Decoder(_Spoken).decode

#: Bytes of a user's dictionary of times, and of each entry with its key.
A_USER: Final = 400
A_TIME: Final = 200


class Sessions(RowsByUser[Session]):
    """The sessions of all users in this worker's partitions."""

    def __init__(self, *, kept: KeptRows | None = None, resident: Resident | None = None) -> None:
        resident = Resident() if resident is None else resident
        super().__init__(
            encode_session,
            decode_session,
            attrgetter("user_id"),
            attrgetter("offset"),
            kept=kept,
            resident=resident,
        )
        #: The time of the last message of each session of a user (epoch ms), by partition and user; unwritten changes
        #: may be missing.
        self._times: Derived[tuple[int, str], dict[bytes, int]] = Derived(A_USER, A_TIME)
        resident.add(self._times)

    def spoken_in(self, partition: int, user_id: str, since: int) -> Iterator[Session]:
        """Yield the user's sessions that have a message after `since` (epoch ms), newest first.

        Each session is decoded when the caller reaches it. No session of the partition may be put or deleted
        meanwhile.
        """
        times = self._times.get((partition, user_id))
        if times is None:
            kept = self._kept.scan(partition, beginning_of(user_id))
            times = {key: _decode_beginning(raw).last_at for key, raw in kept}
            self._times.keep((partition, user_id), times)
        self._follow(times, partition, user_id)
        for key in sorted((key for key, at in times.items() if at > since), key=times.__getitem__, reverse=True):
            session = self.get(partition, key)
            assert session is not None, "a session's time is known, and the session is not there"
            yield session

    def restore(self, partition: int, rows: Iterable[tuple[bytes, bytes | None]]) -> None:
        self._times.clear()
        super().restore(partition, rows)

    def own(self, partitions: frozenset[int]) -> None:
        self._times.clear()
        super().own(partitions)

    def undo(self) -> None:
        self._times.clear()
        super().undo()

    def written(self, changes: Sequence[Change]) -> None:
        for partition, user_id in self._being_written:
            if (times := self._times.held((partition, user_id))) is not None:
                self._follow(times, partition, user_id)
        super().written(changes)

    def _follow(self, times: dict[bytes, int], partition: int, user_id: str) -> None:
        for key in self._unwritten(partition, user_id):
            session = self.get(partition, key)
            if session is None:
                times.pop(key, None)
            else:
                times[key] = session.last_at
