"""Notes: short-term memories that a user asked for, one row each, kept with their session until they expire.

A note refers to its session, and may become a long-term memory when the session ends. So a flush writes notes after
sessions, and deletes notes before sessions.
"""

from __future__ import annotations

import heapq
import uuid
from collections import Counter
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import orjson

from tables.windows.compact_json import compact_json
from tables.windows.kept_rows import KeptRows
from tables.windows.resident import Resident
from tables.windows.rows import Rows
from tables.windows.rows_by_user import beginning_of

#: The index is rebuilt if the dropped notes in its heap outnumber the existing notes by more than this.
_MOST_GONE: Final = 1_000


class Note(NamedTuple):
    """A short-term memory. Times are epoch milliseconds of event time; importance is 0-100.

    `event_id` is the id of the event that requested the note. `promoted` is true if it became a long-term memory.
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
    """Return the key of a note: its user, session and id. Notes of different users may have the same id."""
    return compact_json((note.user_id, note.session_id, note.id))


def encode_note(note: Note) -> bytes:
    return compact_json(tuple(note))


def decode_note(raw: bytes) -> Note:
    identity, event_id, *rest = orjson.loads(raw)
    return Note(uuid.UUID(identity), uuid.UUID(event_id), *rest)


class _Index:
    """An index of the existing notes: their keys by name, the number of notes of each user, and a heap of expiries.

    A note has two names: its own id, and the id of the event that requested it. If a note is dropped, its entry stays
    in the heap until the time of its expiry, or until the index is rebuilt.
    """

    def __init__(self, rows: Iterable[tuple[int, bytes, Note]]) -> None:
        #: The key of a note, by partition, user and the bytes of a name of the note. If several notes of a user have
        #: the same name, `names` has the key of one note, and `_namesakes` has the keys of all other notes.
        self.names: dict[tuple[int, str, bytes], bytes] = {}
        self._namesakes: dict[tuple[int, str, bytes], list[bytes]] = {}
        self.counts: Counter[tuple[int, str]] = Counter()
        self.there = 0
        #: Heap of expiries: the time (epoch ms), the partition, and the key of a note.
        self.expiries: list[tuple[int, int, bytes]] = []
        #: Partitions and keys of notes that `Notes.expired` has found, and that are not dropped yet.
        self.expired: dict[tuple[int, bytes], None] = {}
        for partition, key, note in rows:
            self._name(partition, key, note)
            self.expiries.append((note.expires_at, partition, key))
        heapq.heapify(self.expiries)

    def put(self, partition: int, key: bytes, before: Note | None, note: Note) -> None:
        if before is None or before.event_id != note.event_id:
            if before is not None:
                self._unname(partition, key, before)
            self._name(partition, key, note)
        if before is None or before.expires_at != note.expires_at:
            heapq.heappush(self.expiries, (note.expires_at, partition, key))

    def delete(self, partition: int, key: bytes, note: Note) -> None:
        self._unname(partition, key, note)
        self.expired.pop((partition, key), None)

    def _name(self, partition: int, key: bytes, note: Note) -> None:
        for name in _names(partition, note):
            if self.names.setdefault(name, key) != key:
                self._namesakes.setdefault(name, []).append(key)
        self.counts[partition, note.user_id] += 1
        self.there += 1

    def _unname(self, partition: int, key: bytes, note: Note) -> None:
        for name in _names(partition, note):
            namesakes = self._namesakes.pop(name, [])
            if self.names[name] != key:
                namesakes.remove(key)
            elif namesakes:
                self.names[name] = namesakes.pop(0)
            else:
                del self.names[name]
            if namesakes:
                self._namesakes[name] = namesakes
        of_user = partition, note.user_id
        self.counts[of_user] -= 1
        if not self.counts[of_user]:
            del self.counts[of_user]
        self.there -= 1


def _names(partition: int, note: Note) -> set[tuple[int, str, bytes]]:
    return {(partition, note.user_id, name.bytes) for name in (note.id, note.event_id)}


class Notes(Rows[Note]):
    """The notes of all users in this worker's partitions, by user, session and id."""

    def __init__(self, *, kept: KeptRows | None = None, resident: Resident | None = None) -> None:
        super().__init__(encode_note, decode_note, kept=kept, resident=resident)
        #: The index of the notes. It is built on first use; until then, it is None.
        self._index: _Index | None = None

    def of_session(self, partition: int, user_id: str, session_id: str) -> list[Note]:
        """Return a session's notes, oldest first, including expired ones."""
        return _oldest_first(note for _, note in self.of_partition(partition, beginning_of(user_id, session_id)))

    def of_user(self, partition: int, user_id: str) -> list[Note]:
        """Return all of a user's notes, oldest first, including expired ones."""
        return _oldest_first(note for _, note in self.of_partition(partition, beginning_of(user_id)))

    def count_of(self, partition: int, user_id: str) -> int:
        """Return the number of the user's notes."""
        return self._indexed().counts[partition, user_id]

    def named(self, partition: int, user_id: str, name: uuid.UUID) -> Note | None:
        """Return the user's note that has `name` as its id, or as the id of its event; None if there is none."""
        key = self._indexed().names.get((partition, user_id, name.bytes))
        return None if key is None else self.get(partition, key)

    def expired(self, now: int) -> list[tuple[int, Note]]:
        """Return partition and note of all notes that are expired at `now` (epoch ms).

        Each call returns these notes again until they are dropped.
        """
        index = self._indexed()
        while index.expiries and index.expiries[0][0] <= now:
            at, partition, key = heapq.heappop(index.expiries)
            note = self.get(partition, key)
            if note is not None and note.expires_at == at:
                index.expired[partition, key] = None
        held = [(partition, self.get(partition, key)) for partition, key in index.expired]
        return [(partition, note) for partition, note in held if note is not None and note.expires_at <= now]

    def keep(self, partition: int, note: Note) -> None:
        """Store a new note, or the new value of a note."""
        self.put(partition, note_key(note), note)

    def drop(self, partition: int, note: Note) -> None:
        """Delete a note. The next flush writes a tombstone for its key."""
        self.delete(partition, note_key(note))

    def put(self, partition: int, key: bytes, row: Note) -> None:
        if self._index is not None:
            self._index.put(partition, key, self.get(partition, key), row)
        super().put(partition, key, row)

    def delete(self, partition: int, key: bytes) -> None:
        if self._index is not None and (note := self.get(partition, key)) is not None:
            self._index.delete(partition, key, note)
        super().delete(partition, key)
        if self._index is not None and len(self._index.expiries) > 2 * self._index.there + _MOST_GONE:
            self._index = None  # the heap has too many entries of dropped notes

    def restore(self, partition: int, rows: Iterable[tuple[bytes, bytes | None]]) -> None:
        self._index = None
        super().restore(partition, rows)

    def own(self, partitions: frozenset[int]) -> None:
        self._index = None
        super().own(partitions)

    def undo(self) -> None:
        self._index = None
        super().undo()

    def _indexed(self) -> _Index:
        if self._index is None:
            self._index = _Index(self.items())
        return self._index


def _oldest_first(notes: Iterable[Note]) -> list[Note]:
    return sorted(notes, key=lambda note: (note.created_at, note.id))
