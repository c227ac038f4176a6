"""The table of sessions, with one small row for each session. It yields a user's sessions by their last messages.

A search needs recent messages, so it reads only the most recently active sessions. For users with a recent search, a
cache has the time of each session's last message. The cache is updated when sessions change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import Final

import msgspec

from schemas.sessions import Session
from tables.windows.compact_json import compact_json, encode_row
from tables.windows.kept_rows import KeptRows
from tables.windows.resident import Derived, Resident
from tables.windows.rows import Change
from tables.windows.rows_by_user import RowsByUser, beginning_of


@lru_cache(maxsize=16_384)
def session_key(user_id: str, session_id: str) -> bytes:
    return compact_json((user_id, session_id))


def encode_session(session: Session) -> bytes:
    # Zeros at the end of the row are left out. The last three fields (`lead`, `known`, `horizon`) are 0 in most rows,
    # because most sessions are short, and few messages are dated ahead of their records.
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
    """The first fields of a session's row, up to the time of its last message (`last_at`, epoch ms)."""

    user_id: str
    session_id: str
    offset: int
    last_at: int


_decode_beginning: Final = msgspec.json.Decoder(_Spoken).decode

#: The approximate bytes of memory of a user's dictionary in `Sessions._times`, and of one entry with its key.
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
        #: A cache. For a partition and user, it has the time of the last message (epoch ms) of each of the user's
        #: sessions, by the session's key. Changes that are not written to the changelog yet may be missing.
        self._times: Derived[tuple[int, str], dict[bytes, int]] = Derived(A_USER, A_TIME)
        resident.add(self._times)

    def spoken_in(self, partition: int, user_id: str, since: int) -> Iterator[Session]:
        """Yield the user's sessions that have a message after `since` (epoch ms), by last message, newest first.

        Each session is decoded when the caller reaches it. The caller must not put or delete a session of the
        partition during the iteration.
        """
        times = self._times.get((partition, user_id))
        if times is None:
            kept = self._kept.scan(partition, beginning_of(user_id))
            times = {key: _decode_beginning(raw).last_at for key, raw in kept}
            self._times.keep((partition, user_id), times)
        self._follow(times, partition, user_id)
        for key in sorted((key for key, at in times.items() if at > since), key=times.__getitem__, reverse=True):
            session = self.get(partition, key)
            assert session is not None, "a session's time is known, but the session is missing"
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
