"""Short-term memories that a user asked for: one row each, kept with their session until they expire.

They are called notes here. A note refers to its session, whose end may make a long-term memory of it: its table
is written after the sessions', and deleted from before it.
"""

from __future__ import annotations

import heapq
import uuid
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import orjson

from tables.windows.compact_json import compact_json
from tables.windows.kept_rows import KeptRows
from tables.windows.resident import Resident
from tables.windows.rows import Rows
from tables.windows.rows_by_user import beginning_of

#: Moments at which notes would have expired that are gone: with more, and more than notes, they are ordered anew.
_MOST_GONE: Final = 1_000


class Note(NamedTuple):
    """A short-term memory. Times are epoch milliseconds of event time; importance is 0-100.

    `event_id` is that of the event that asked for it. `promoted` says that a long-term memory was made of it.
    """

    id: uuid.UUID
    event_id: uuid.UUID
    user_id: str
    session_id: str
    text: str
    importance: float
    created_at: int
    expires_at: int
    agent_id: str | None = None
    metadata: dict[str, Any] | None = None
    promoted: bool = False


def note_key(note: Note) -> bytes:
    """User, session and id: one user's ids say nothing about another's."""
    return compact_json((note.user_id, note.session_id, note.id))


def encode_note(note: Note) -> bytes:
    return compact_json(tuple(note))


def decode_note(raw: bytes) -> Note:
    identity, event_id, *rest = orjson.loads(raw)
    return Note(uuid.UUID(identity), uuid.UUID(event_id), *rest)


class Notes(Rows[Note]):
    """The notes of every user whose partition is this worker's, found by user, session and id."""

    def __init__(self, *, kept: KeptRows | None = None, resident: Resident | None = None) -> None:
        super().__init__(encode_note, decode_note, kept=kept, resident=resident)
        #: When each note expires (epoch ms), how many there are, and which of those that were given as expired are
        #: there; None before it is asked for.
        self._expiries: list[tuple[int, int, bytes]] | None = None
        self._there = 0
        self._expired: dict[tuple[int, bytes], None] = {}

    def of_session(self, partition: int, user_id: str, session_id: str) -> list[Note]:
        """A session's notes, oldest first, expired ones among them."""
        found = [note for _, note in self.of_partition(partition, beginning_of(user_id, session_id))]
        return sorted(found, key=lambda note: (note.created_at, note.id))

    def of_user(self, partition: int, user_id: str) -> list[Note]:
        return [note for _, note in self.of_partition(partition, beginning_of(user_id))]

    def named(self, partition: int, user_id: str, name: uuid.UUID) -> Note | None:
        """The user's note that has this id, or that the event with this id asked for."""
        return next((note for note in self.of_user(partition, user_id) if name in (note.id, note.event_id)), None)

    def expired(self, now: int) -> list[tuple[int, Note]]:
        """Partition and note of all that have expired at `now` (epoch ms), again and again until they are dropped."""
        expiries = self._in_time()
        while expiries and expiries[0][0] <= now:
            at, partition, key = heapq.heappop(expiries)
            note = self.get(partition, key)
            if note is not None and note.expires_at == at:
                self._expired[partition, key] = None
        held = [(partition, self.get(partition, key)) for partition, key in self._expired]
        return [(partition, note) for partition, note in held if note is not None and note.expires_at <= now]

    def keep(self, partition: int, note: Note) -> None:
        """Keep a note, or its new value."""
        self.put(partition, note_key(note), note)

    def drop(self, partition: int, note: Note) -> None:
        """Forget a note; its key gets a tombstone."""
        self.delete(partition, note_key(note))

    def put(self, partition: int, key: bytes, row: Note) -> None:
        before = self.get(partition, key)
        super().put(partition, key, row)
        if self._expiries is not None:
            self._there += before is None
            if before is None or before.expires_at != row.expires_at:
                heapq.heappush(self._expiries, (row.expires_at, partition, key))

    def delete(self, partition: int, key: bytes) -> None:
        self._there -= self.get(partition, key) is not None
        self._expired.pop((partition, key), None)
        super().delete(partition, key)
        if self._expiries is not None and len(self._expiries) > 2 * self._there + _MOST_GONE:
            self._expiries = None  # of notes that were forgotten long before they expire

    def restore(self, partition: int, rows: Iterable[tuple[bytes, bytes | None]]) -> None:
        self._expiries = None
        super().restore(partition, rows)

    def own(self, partitions: frozenset[int]) -> None:
        self._expiries = None
        super().own(partitions)

    def undo(self) -> None:
        self._expiries = None
        super().undo()

    def _in_time(self) -> list[tuple[int, int, bytes]]:
        if self._expiries is None:
            self._expiries = [(note.expires_at, partition, key) for partition, key, note in self.items()]
            self._there, self._expired = len(self._expiries), {}
            heapq.heapify(self._expiries)
        return self._expiries
