"""Short-term memories that a user asked for: one row each, kept with their session until they expire.

They are called notes here. A note refers to its session, whose end may make a long-term memory of it: its table
is written after the sessions', and deleted from before it.
"""

from __future__ import annotations

import heapq
import uuid
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import orjson

from tables.windows.rows import Rows

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
    return orjson.dumps((note.user_id, note.session_id, note.id))


def encode_note(note: Note) -> bytes:
    return orjson.dumps(tuple(note))


def decode_note(raw: bytes) -> Note:
    identity, event_id, *rest = orjson.loads(raw)
    return Note(uuid.UUID(identity), uuid.UUID(event_id), *rest)


@dataclass(slots=True)
class _OfUser:
    """A user's notes: by the ids of memory and event, and by session and id."""

    named: dict[uuid.UUID, Note] = field(default_factory=dict)
    sessions: dict[str, dict[uuid.UUID, Note]] = field(default_factory=dict)

    def enter(self, note: Note) -> None:
        self.named[note.id] = self.named[note.event_id] = note
        self.sessions.setdefault(note.session_id, {})[note.id] = note

    def strike(self, note: Note) -> None:
        for name in (note.id, note.event_id):
            self.named.pop(name, None)
        of_session = self.sessions[note.session_id]
        del of_session[note.id]
        if not of_session:
            del self.sessions[note.session_id]


class Notes(Rows[Note]):
    """The notes of every user whose partition is this worker's, found by user, session and id."""

    def __init__(self) -> None:
        super().__init__(encode_note, decode_note)
        self._users: dict[tuple[int, str], _OfUser] | None = None
        #: With the index: when each note expires (epoch ms), and which of those that were given as expired are there.
        self._expiries: list[tuple[int, int, bytes]] = []
        self._expired: dict[tuple[int, bytes], None] = {}

    def of_session(self, partition: int, user_id: str, session_id: str) -> list[Note]:
        """A session's notes, oldest first, expired ones among them."""
        found = self._index().get((partition, user_id))
        of_session = found.sessions.get(session_id, {}) if found else {}
        return sorted(of_session.values(), key=lambda note: (note.created_at, note.id))

    def of_user(self, partition: int, user_id: str) -> list[Note]:
        found = self._index().get((partition, user_id))
        return [note for of_session in found.sessions.values() for note in of_session.values()] if found else []

    def named(self, partition: int, user_id: str, name: uuid.UUID) -> Note | None:
        """The user's note that has this id, or that the event with this id asked for."""
        found = self._index().get((partition, user_id))
        return found.named.get(name) if found else None

    def expired(self, now: int) -> list[tuple[int, Note]]:
        """Partition and note of all that have expired at `now` (epoch ms), again and again until they are dropped."""
        self._index()
        while self._expiries and self._expiries[0][0] <= now:
            at, partition, key = heapq.heappop(self._expiries)
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
        self._strike(partition, key)
        super().put(partition, key, row)
        if self._users is not None:
            self._users.setdefault((partition, row.user_id), _OfUser()).enter(row)
            if before is None or before.expires_at != row.expires_at:
                heapq.heappush(self._expiries, (row.expires_at, partition, key))

    def delete(self, partition: int, key: bytes) -> None:
        self._strike(partition, key)
        self._expired.pop((partition, key), None)
        super().delete(partition, key)
        if len(self._expiries) > 2 * len(self) + _MOST_GONE:  # of notes that were forgotten long before they expire
            self._drop_index()

    def _drop_index(self) -> None:
        self._users = None

    def _strike(self, partition: int, key: bytes) -> None:
        held = self.get(partition, key)
        if self._users is not None and held is not None:
            of_user = self._users[partition, held.user_id]
            of_user.strike(held)
            if not of_user.sessions:
                del self._users[partition, held.user_id]

    def _index(self) -> dict[tuple[int, str], _OfUser]:
        if self._users is None:
            self._users, self._expiries, self._expired = {}, [], {}
            for partition, key, note in self.items():
                self._users.setdefault((partition, note.user_id), _OfUser()).enter(note)
                self._expiries.append((note.expires_at, partition, key))
            heapq.heapify(self._expiries)
        return self._users
