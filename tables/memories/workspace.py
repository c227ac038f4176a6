"""Workspaces: the memories that a batch of events reads and changes, as they are after the batch's changes so far."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from schemas.lifecycle import score_of
from schemas.memories import Memory, shown_score
from schemas.settings import LifecycleSettings
from schemas.times import iso
from tables.memories.catalog.archive import ToArchive
from tables.memories.catalog.catalog import Catalog
from tables.memories.catalog.changes import Changes, Done, Merged, Move, NewLink, Unlinked
from tables.memories.catalog.erasing import NAMING, OUR_REASONS, Named
from tables.vectors.index import Vectors

#: The maximum number of entries in a memory's `meta.transitions`. The newest are kept.
TRANSITIONS_KEPT = 20


@dataclass(slots=True)
class Workspace:
    """The memories of one user that a batch has loaded, by id. Another user's memory may have the same id.

    `first` is the number (`seq`) of the batch's first new row. All workspaces of a batch share `changes`.
    """

    user_id: str
    catalog: Catalog
    lifecycle: LifecycleSettings
    changes: Changes
    first: int
    known: dict[uuid.UUID, Memory] = field(default_factory=dict)
    archived: dict[uuid.UUID, Memory] = field(default_factory=dict)
    #: By the id of a near-copy, the memory into which it was merged.
    aliases: dict[uuid.UUID, uuid.UUID] = field(default_factory=dict)
    gone: set[uuid.UUID] = field(default_factory=set)
    #: The number of new rows of this user in the batch.
    added: int = 0
    #: The growth of two counts since the batch began, without new rows. `regained` is for the count of current
    #: memories, `loosened` for the count of current memories that are not pinned.
    regained: int = 0
    loosened: int = 0

    def load(self, ids: Iterable[uuid.UUID]) -> None:
        self._learn(self.catalog.by_id(self._named(set(ids) - self.known.keys())))

    def load_archived(self, ids: Iterable[uuid.UUID]) -> None:
        if asked := self.catalog.ids.perhaps(self._named(set(ids) - self.archived.keys())):
            self._learn_archived(self.catalog.archive.by_id(asked))

    def load_current(self) -> None:
        """Load all of the user's memories that are not archived."""
        self._learn(self.catalog.of_user(self.user_id))

    def load_all(self) -> None:
        """Load all of the user's memories, archived ones too."""
        self.load_current()
        self._learn_archived(self.catalog.archive.of_user(self.user_id))

    def _named(self, ids: Iterable[uuid.UUID]) -> list[Named]:
        return [(self.user_id, identity) for identity in ids]

    def summed_up_in(self, ids: set[uuid.UUID]) -> set[uuid.UUID]:
        """Return the ids of all summaries that were ever made of these memories."""
        return self.catalog.history.summed_up_in(self.user_id, ids)

    def load_behind(self, ids: set[uuid.UUID]) -> None:
        """Load the memories that were summarized or superseded by one of `ids`."""
        self._learn(self.catalog.behind(self.user_id, ids))

    def _learn(self, memories: Iterable[Memory]) -> None:
        for memory in memories:
            if memory.id not in self.gone:
                self.known.setdefault(memory.id, memory)

    def _learn_archived(self, memories: Iterable[Memory]) -> None:
        taken = {*self.changes.unarchived}
        for memory in memories:
            if memory.seq not in taken and memory.id not in self.known:
                self.archived.setdefault(memory.id, memory)

    def named(self, memory_id: uuid.UUID) -> uuid.UUID:
        """Return the id under which a memory is stored. For a near-copy, it is the memory it was merged into."""
        return self.aliases.get(memory_id, memory_id)

    def names(self, memory_id: uuid.UUID) -> set[uuid.UUID]:
        """Return the memory's id, and the ids of the near-copies that were merged into it."""
        fresh = {alias for alias, stands in self.aliases.items() if stands == memory_id}
        return {memory_id} | fresh | self.catalog.merged_into(self.user_id, memory_id)

    def as_it_is_now(self, memory: Memory | None) -> Memory | None:
        """Return the memory with the batch's changes; None if the batch removed it or replaced its text."""
        if memory is None or memory.id in self.gone:
            return None
        now = self.known.get(memory.id, memory)
        return now if now.seq == memory.seq else None

    def has(self, memory_id: uuid.UUID) -> bool:
        """Return whether this is the id of a memory, an archived memory or a near-copy."""
        if memory_id in self.known:
            return True
        elsewhere = self.aliases or self.archived  # this test is faster than hashing an id
        return bool(elsewhere) and (memory_id in self.aliases or memory_id in self.archived)

    @property
    def next_seq(self) -> int:
        return self.first + self.changes.numbered

    def add(self, memory: Memory, vector: Vectors) -> None:
        """Add a new row. The memory's `seq` must be `next_seq`."""
        self.changes.numbered += 1
        self.changes.new[memory.seq] = memory
        self.changes.vectors[memory.seq] = vector
        self.known[memory.id] = memory
        self.added += 1

    @property
    def more(self) -> tuple[int, int]:
        """Upper bounds of the growth of two counts since the batch began.

        The first count is of the current memories, the second of the current memories that are not pinned. They are
        upper bounds, because each new row is added to both counts.
        """
        return self.added + self.regained, self.added + self.loosened

    def _recount(self, before: Memory, after: Memory | None) -> None:
        is_current = after is not None and after.current
        is_loose = is_current and after is not None and not after.pinned
        self.regained += is_current - before.current
        self.loosened += is_loose - (before.current and not before.pinned)

    def change(self, memory: Memory) -> None:
        self._recount(self.known.get(memory.id, memory), memory)
        self.known[memory.id] = memory
        if memory.seq in self.changes.new:
            self.changes.new[memory.seq] = memory
        else:
            self.changes.updated[memory.seq] = memory

    def merge(self, memory: Memory, twin: Memory) -> None:
        """Record that `memory` was merged into `twin`."""
        self.aliases[memory.id] = twin.id
        self.changes.merged.append(Merged(memory.id, twin.user_id, twin.id, memory.created_at))

    def archive(self, memory: Memory, at: int, reason: str) -> None:
        self.change(memory)
        self._recount(memory, None)
        del self.known[memory.id]
        self.archived[memory.id] = memory
        self.gone.add(memory.id)
        self.changes.archived.append(ToArchive(memory.seq, at, reason))

    def unarchive(self, memory: Memory) -> None:
        """Take a memory out of the archive. The caller may then add it as a new row."""
        del self.archived[memory.id]
        self.changes.unarchived.append(memory.seq)

    def drop(self, memory: Memory) -> None:
        """Delete the memory's row; the caller may add the memory again under another number."""
        self._recount(memory, None)
        self.known.pop(memory.id, None)
        self.changes.updated.pop(memory.seq, None)
        if self.changes.new.pop(memory.seq, None) is None:
            self.changes.dropped.append(memory.seq)

    def forget(self, memory: Memory) -> None:
        """Delete the memory, archived or not. The audit trail keeps its id."""
        if memory.id in self.archived:
            self.unarchive(memory)
        else:
            self.drop(memory)
        self.gone.add(memory.id)

    def erase(self, ids: set[uuid.UUID]) -> None:
        """Erase all rows that contain words of these memories, whether the memories still exist or not."""
        self.changes.forgotten += self._named(ids)
        self._erase_noted(ids.__contains__)

    def erase_all(self) -> None:
        """Erase all rows that contain words of any memory that the user has had so far."""
        self.changes.forgotten_users.append(self.user_id)
        self._erase_noted(lambda identity: True)

    def _erase_noted(self, concerned: Callable[[uuid.UUID], bool]) -> None:
        """Erase rows about forgotten memories from the batch's changes so far, which no table has yet.

        `concerned` takes a memory's id, and returns whether the memory is forgotten.
        """
        changes, user = self.changes, self.user_id
        for table, columns in NAMING.items():
            rows = getattr(changes, table)
            kept = [
                row
                for row in rows
                if row.user_id != user or not any(concerned(getattr(row, name)) for name in columns)
            ]
            setattr(changes, table, kept)
        changes.moves = [
            move._replace(reason="erased")
            if move.user_id == user and move.reason not in OUR_REASONS and concerned(move.memory_id)
            else move
            for move in changes.moves
        ]

    def said_after(self, moment: int) -> set[uuid.UUID]:
        """Return the ids of the user's near-copies that are dated after a time (epoch ms)."""
        mine = (new for new in self.changes.merged if new.user_id == self.user_id)
        fresh = {new.memory_id for new in mine if new.said_at > moment}
        return fresh | self.catalog.merged_after(self.user_id, moment)

    def link(self, new: NewLink) -> None:
        self.unlink(new.source_id, new.target_id, new.kind)
        self.changes.links.append(new)

    def unlink(self, source_id: uuid.UUID, target_id: uuid.UUID, kind: str) -> None:
        link = Unlinked(self.user_id, source_id, target_id, kind)
        self.changes.links = [new for new in self.changes.links if new[:4] != link]
        self.changes.unlinked.append(link)

    def note(self, memory: Memory, at: int, event: str, **details: Any) -> None:
        """Add an entry to the memory's history."""
        self.changes.history.append(Done(memory.id, memory.user_id, at, event, details))

    def move(self, memory: Memory, before: str, after: str, at: int, reason: str) -> None:
        """Add a change of the memory's state to the audit trail."""
        score = score_of(memory, at, self.lifecycle)
        self.changes.moves.append(Move(memory.id, memory.user_id, before, after, score, at, reason))

    def with_transition(self, memory: Memory, before: str, after: str, at: int) -> dict[str, Any]:
        """Return the memory's `meta` with one more transition."""
        entry = {
            "at": iso(at),
            "from": before,
            "to": after,
            "score": shown_score(score_of(memory, at, self.lifecycle)),
        }
        noted = memory.meta.get("transitions")
        earlier = noted if isinstance(noted, list) else []
        return {**memory.meta, "transitions": [*earlier, entry][-TRANSITIONS_KEPT:]}

    def vectors_of(self, memories: Sequence[Memory]) -> Vectors:
        """Return the vectors of stored or new memories, float32[n, d], in their order."""
        stored = [memory.seq for memory in memories if memory.seq not in self.changes.vectors]
        found: Mapping[int, Vectors] = {}
        if stored:
            found = dict(zip(stored, self.catalog.vectors(np.array(stored, np.int64))[1], strict=True))
        new = self.changes.vectors
        return np.stack([found[memory.seq] if memory.seq in found else new[memory.seq] for memory in memories])


class Workspaces(dict[str, Workspace]):
    """The workspaces of a batch by user id. Each is created on first access. All share one `Changes`."""

    def __init__(self, catalog: Catalog, lifecycle: LifecycleSettings, first: int) -> None:
        super().__init__()
        self.catalog, self.lifecycle, self._first = catalog, lifecycle, first
        self.changes = Changes()

    def __missing__(self, user_id: str) -> Workspace:
        made = self[user_id] = Workspace(user_id, self.catalog, self.lifecycle, self.changes, self._first)
        return made

    def look_up(self, named: set[Named]) -> None:
        """Load the memories with these ids. Most ids are new, and need no query."""
        held = self.catalog.ids.perhaps(named)
        if not held:
            return
        missing = set(held)
        for memory in self.catalog.by_id(held):
            self[memory.user_id].known[memory.id] = memory
            missing.discard((memory.user_id, memory.id))
        if missing:
            stands = set[Named]()
            for (user_id, identity), into in self.catalog.merged(missing).items():
                self[user_id].aliases[identity] = into
                stands.add((user_id, into))
            archived = self.catalog.archive.by_id(missing | stands)
            for memory in archived:
                self[memory.user_id].archived[memory.id] = memory
            for memory in self.catalog.by_id(stands - {(memory.user_id, memory.id) for memory in archived}):
                self[memory.user_id].known[memory.id] = memory
