"""The memories that a batch of events works on: what the catalog holds, and over it what the batch has changed."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from schemas.memories import Memory
from schemas.messages import iso
from schemas.settings import LifecycleSettings
from tables.archive import ToArchive
from tables.catalog import Catalog, Changes, Done, Merged, Move, NewLink
from tables.vectors import Vectors

#: Of a memory's `meta.transitions`, the newest.
TRANSITIONS_KEPT = 20


@dataclass(slots=True)
class Workspace:
    """Memories by id, current and archived. `first` numbers the first new one; all writing goes into `changes`."""

    catalog: Catalog
    lifecycle: LifecycleSettings
    first: int
    changes: Changes = field(default_factory=Changes)
    known: dict[uuid.UUID, Memory] = field(default_factory=dict)
    archived: dict[uuid.UUID, Memory] = field(default_factory=dict)
    #: Of near-copies that are no memories of their own, the memory that stands for each.
    aliases: dict[uuid.UUID, uuid.UUID] = field(default_factory=dict)
    gone: set[uuid.UUID] = field(default_factory=set)
    #: New memories by user.
    added: Counter[str] = field(default_factory=Counter)
    #: Scores by what they are made of: asked for one by one, each takes milliseconds.
    scores: dict[tuple[float, bool, int, int], float] = field(default_factory=dict)

    def look_up(self, named: set[uuid.UUID]) -> None:
        """Have what these ids mean at hand. Most are new, and of those no table has to be asked."""
        held = self.catalog.perhaps(named)
        if not held:
            return
        self.known = self.catalog.by_id(held)
        missing = set(held) - self.known.keys()
        if missing:
            self.aliases = self.catalog.merged(missing)
            stands = set(self.aliases.values())
            self.archived = self.catalog.archive.by_id(missing | stands)
            self.load(stands - self.archived.keys())

    def load(self, ids: Iterable[uuid.UUID]) -> None:
        self._learn(self.catalog.by_id(set(ids) - self.known.keys()).values())

    def load_user(self, user_id: str) -> None:
        self._learn(self.catalog.of_user(user_id))

    def load_archive(self, user_id: str) -> None:
        taken = {*self.changes.unarchived, *self.known}
        self.archived |= {m.id: m for m in self.catalog.archive.of_user(user_id) if m.id not in taken}

    def load_behind(self, ids: set[uuid.UUID]) -> None:
        """Have those at hand in whose place one of `ids` stands."""
        self._learn(self.catalog.behind(ids))

    def _learn(self, memories: Iterable[Memory]) -> None:
        for memory in memories:
            if memory.id not in self.gone:
                self.known.setdefault(memory.id, memory)

    def named(self, memory_id: uuid.UUID) -> uuid.UUID:
        """The id under which the memory is kept."""
        return self.aliases.get(memory_id, memory_id)

    def names(self, memory_id: uuid.UUID) -> set[uuid.UUID]:
        """The memory's id, and those of the near-copies for which it stands."""
        fresh = {alias for alias, stands in self.aliases.items() if stands == memory_id}
        return {memory_id} | fresh | self.catalog.merged_into(memory_id)

    def has(self, memory_id: uuid.UUID) -> bool:
        """Whether there is such a memory, of its own or as a near-copy, here or in the archive."""
        if memory_id in self.known:
            return True
        elsewhere = self.aliases or self.archived  # hashing an id takes longer than all else here
        return bool(elsewhere) and (memory_id in self.aliases or memory_id in self.archived)

    def of_user(self, user_id: str) -> list[Memory]:
        """Of what is at hand."""
        return [memory for memory in self.known.values() if memory.user_id == user_id]

    @property
    def next_seq(self) -> int:
        return self.first + self.changes.numbered

    def add(self, memory: Memory, vector: Vectors) -> None:
        """A new row, numbered `next_seq`."""
        self.changes.numbered += 1
        self.changes.new[memory.id] = memory
        self.changes.vectors[memory.id] = vector
        self.known[memory.id] = memory
        self.added[memory.user_id] += 1

    def change(self, memory: Memory) -> None:
        self.known[memory.id] = memory
        if memory.id in self.changes.new:
            self.changes.new[memory.id] = memory
        else:
            self.changes.updated[memory.id] = memory

    def merge(self, memory: Memory, twin: Memory) -> None:
        """`twin` stands for `memory` from now on."""
        self.aliases[memory.id] = twin.id
        self.changes.merged.append(Merged(memory.id, twin.user_id, twin.id))

    def archive(self, memory: Memory, at: int, reason: str) -> None:
        self.change(memory)
        del self.known[memory.id]
        self.archived[memory.id] = memory
        self.gone.add(memory.id)
        self.changes.archived.append(ToArchive(memory.seq, at, reason))

    def unarchive(self, memory: Memory) -> None:
        """Out of the archive, to wherever."""
        del self.archived[memory.id]
        self.changes.unarchived.append(memory.id)

    def drop(self, memory: Memory) -> None:
        """Its row goes, and comes back as nothing or under another number."""
        del self.known[memory.id]
        self.changes.updated.pop(memory.id, None)
        if self.changes.new.pop(memory.id, None) is None:
            self.changes.dropped.append(memory.seq)

    def forget(self, memory: Memory) -> None:
        """Nothing of it stays but its name in the audit trail."""
        if memory.id in self.archived:
            self.unarchive(memory)
        else:
            self.drop(memory)
        self.gone.add(memory.id)
        self.changes.forgotten.append(memory.id)
        self.changes.links = [new for new in self.changes.links if memory.id not in (new.source_id, new.target_id)]

    def link(self, new: NewLink) -> None:
        self.unlink(new.source_id, new.target_id, new.kind)
        self.changes.links.append(new)

    def unlink(self, *link: *tuple[uuid.UUID, uuid.UUID, str]) -> None:
        self.changes.links = [new for new in self.changes.links if new[1:4] != link]
        self.changes.unlinked.append(link)

    def reckon(self, memories: Iterable[Memory], at: int) -> None:
        """Have the scores that these are worth at `at` (epoch ms) at hand."""
        new = {_made_of(memory, at): memory for memory in memories}
        found = self.catalog.ageing.scored(list(new.values()), at, self.lifecycle)
        self.scores |= {key: one.score for key, one in zip(new, found, strict=True)}

    def score(self, memory: Memory, at: int) -> float:
        if _made_of(memory, at) not in self.scores:
            self.reckon([memory], at)
        return self.scores[_made_of(memory, at)]

    def note(self, memory: Memory, at: int, event: str, **details: Any) -> None:
        """For the memory's history."""
        self.changes.history.append(Done(memory.id, memory.user_id, at, event, details))

    def move(self, memory: Memory, before: str, after: str, at: int, reason: str) -> None:
        """For the audit trail."""
        score = self.score(memory, at)
        self.changes.moves.append(Move(memory.id, memory.user_id, before, after, score, at, reason))

    def with_transition(self, memory: Memory, before: str, after: str, at: int) -> dict[str, Any]:
        """The memory's `meta` with one transition more."""
        entry = {"at": iso(at), "from": before, "to": after, "score": round(self.score(memory, at), 2)}
        noted = memory.meta.get("transitions")
        earlier = noted if isinstance(noted, list) else []
        return {**memory.meta, "transitions": [*earlier, entry][-TRANSITIONS_KEPT:]}

    def vectors_of(self, memories: Sequence[Memory]) -> Vectors:
        """float32[n, d], stored or new."""
        stored = [memory.seq for memory in memories if memory.id not in self.changes.vectors]
        found: Mapping[int, Vectors] = {}
        if stored:
            found = dict(zip(stored, self.catalog.vectors(np.array(stored, np.int64))[1], strict=True))
        new = self.changes.vectors
        return np.stack([found[memory.seq] if memory.seq in found else new[memory.id] for memory in memories])


def _made_of(memory: Memory, at: int) -> tuple[float, bool, int, int]:
    """What a memory's score at `at` (epoch ms) depends on."""
    return memory.importance, memory.pinned, memory.last_accessed, at
