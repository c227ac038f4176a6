"""What a batch of events changes, worked out one event after the other before anything is written."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from schemas.events import (
    Forget,
    ForgetUser,
    Link,
    LongTermEvent,
    Parts,
    Pin,
    Promotion,
    Remember,
    Touch,
    Unlink,
    Unpin,
)
from schemas.memories import Memory, State
from schemas.settings import LongTermSettings
from tables.catalog import Catalog, Changes, NewLink, Tombstone
from tables.vectors import VectorIndex, Vectors, cells_of, earlier_copies


@dataclass(slots=True)
class Applied:
    """What a batch of events came to."""

    new: int = 0
    merged: int = 0
    touched: int = 0
    removed: int = 0
    repeated: int = 0
    forgotten: int = 0
    unknown: int = 0


@dataclass(slots=True)
class Batch:
    """Events, oldest first, with the vectors of their texts by event id. `first` numbers the first new memory."""

    catalog: Catalog
    index: VectorIndex
    settings: LongTermSettings
    first: int
    events: Sequence[LongTermEvent]
    vectors: Mapping[uuid.UUID, Vectors]
    changes: Changes = field(default_factory=Changes)
    known: dict[uuid.UUID, Memory] = field(default_factory=dict)
    near: dict[uuid.UUID, list[int]] = field(default_factory=dict)
    near_rows: dict[int, Memory] = field(default_factory=dict)
    near_events: dict[uuid.UUID, list[uuid.UUID]] = field(default_factory=dict)
    born: dict[uuid.UUID, uuid.UUID] = field(default_factory=dict)
    tombstones: list[Tombstone] = field(default_factory=list)
    result: Applied = field(default_factory=Applied)

    def run(self) -> Applied:
        catalog = self.catalog
        self.known = catalog.by_id(_named_ids(self.events))
        self.tombstones = catalog.tombstones({event.user_id for event in self.events})
        self._find_near([event for event in self.events if isinstance(event, Promotion | Remember)])
        self.near_rows = catalog.by_seq({seq for found in self.near.values() for seq in found})
        for event in self.events:
            self.changes.applied.append(event.event_id)
            self._apply(event)
        return self.result

    def _apply(self, event: LongTermEvent) -> None:
        match event:
            case Promotion() | Remember():
                self._keep(event)
            case Touch():
                for memory in self._mine(event, *event.memory_ids):
                    self._change(self._accessed(memory, event.timestamp))
                    self.result.touched += 1
            case Pin() | Unpin():
                for memory in self._mine(event, event.memory_id):
                    self._change(replace(memory, pinned=isinstance(event, Pin)))
            case Link():
                if len(self._mine(event, event.source_id, event.target_id)) == 2:
                    self.changes.links.append(
                        NewLink(
                            event.user_id,
                            event.source_id,
                            event.target_id,
                            event.kind,
                            event.weight,
                            event.timestamp,
                        )
                    )
            case Unlink():
                if len(self._mine(event, event.source_id, event.target_id)) == 2:
                    link = (event.source_id, event.target_id, event.kind)
                    self.changes.links = [new for new in self.changes.links if new[1:4] != link]
                    self.changes.unlinked.append(link)
            case Forget():
                for memory in self._mine(event, event.memory_id):
                    self._remove(memory)
                self._bury(Tombstone(event.user_id, event.memory_id, event.timestamp))
            case ForgetUser():
                stored = self.catalog.of_user(event.user_id)
                for memory in [*stored, *self.changes.new]:
                    if memory.user_id == event.user_id and memory.created_at <= event.timestamp:
                        self._remove(memory)
                self._bury(Tombstone(event.user_id, None, event.timestamp))

    def _keep(self, event: Promotion | Remember) -> None:
        memory = self._as_memory(event)
        if self._forgotten(memory):
            self.result.forgotten += 1
            return
        if memory.id in self.known:
            self.result.repeated += 1
            return
        vector = self.vectors[event.event_id]
        twin = self._near_copy(event)
        if twin is not None:
            merged = (*twin.message_ids, *(i for i in memory.message_ids if i not in twin.message_ids))
            self._change(replace(twin, importance=max(twin.importance, memory.importance), message_ids=merged))
            self.result.merged += 1
            return
        self.changes.new.append(memory)
        self.changes.vectors.append(vector)
        self.known[memory.id] = memory
        self.born[event.event_id] = memory.id
        self.result.new += 1

    def _as_memory(self, event: Promotion | Remember) -> Memory:
        meta = dict(event.metadata or {})
        if isinstance(event, Promotion):
            meta["promotion"] = {name: getattr(event.parts, name) for name in Parts.__slots__}
            if event.speakers:
                meta["speakers"] = event.speakers
            identity, kind, message_ids = event.memory_id, "exchange", tuple(event.message_ids)
            created = event.started_at
        else:
            identity, kind, message_ids = event.memory_id or event.event_id, "remember", ()
            created = event.timestamp
        return Memory(
            seq=self.first + self.result.new,
            id=identity,
            user_id=event.user_id,
            session_id=event.session_id,
            agent_id=event.agent_id,
            text=event.text,
            kind=kind,
            message_ids=message_ids,
            importance=event.importance,
            created_at=created,
            last_accessed=event.timestamp,
            access_count=0,
            state=State.ACTIVE,
            pinned=False,
            meta=meta,
        )

    def _find_near(self, events: Sequence[Promotion | Remember]) -> None:
        """Look up the near-copies of all texts at once: in their users' cells, and among themselves."""
        if not events:
            return
        cosine = self.settings.near_copy
        vectors = np.stack([self.vectors[event.event_id] for event in events])
        near = self.index.near(cells_of([event.user_id for event in events]), vectors, cosine)
        self.near = {event.event_id: seqs for event, seqs in zip(events, near, strict=True)}
        places: dict[str, list[int]] = {}
        for place, event in enumerate(events):
            places.setdefault(event.user_id, []).append(place)
        for mine in places.values():
            for row, earlier in earlier_copies(vectors[mine], cosine).items():
                self.near_events[events[mine[row]].event_id] = [events[mine[i]].event_id for i in earlier]

    def _near_copy(self, event: Promotion | Remember) -> Memory | None:
        """The first of the user's memories that says the same already, stored or of this batch."""
        for seq in self.near[event.event_id]:
            stored = self.near_rows.get(seq)
            if stored is not None and stored.user_id == event.user_id and stored.id not in self.changes.removed:
                return self.changes.updated.get(stored.id, stored)
        for earlier in self.near_events.get(event.event_id, ()):
            fresh = self.known.get(self.born[earlier]) if earlier in self.born else None
            if fresh is not None:
                return fresh
        return None

    def _forgotten(self, memory: Memory) -> bool:
        return any(covers(grave, memory.user_id, memory.id, memory.created_at) for grave in self.tombstones)

    def _mine(self, event: LongTermEvent, *ids: uuid.UUID) -> list[Memory]:
        """Those of the memories that are there and the event's user's; what others own does not exist."""
        found = [memory for i in ids if (memory := self.known.get(i)) is not None and memory.user_id == event.user_id]
        self.result.unknown += len(ids) - len(found)
        return found

    def _accessed(self, memory: Memory, at: int) -> Memory:
        increment = self.settings.access_increment
        return replace(
            memory,
            importance=min(100.0, memory.importance + increment),
            last_accessed=max(memory.last_accessed, at),
            access_count=memory.access_count + 1,
        )

    def _change(self, memory: Memory) -> None:
        self.known[memory.id] = memory
        for place, fresh in enumerate(self.changes.new):
            if fresh.id == memory.id:
                self.changes.new[place] = memory
                return
        self.changes.updated[memory.id] = memory

    def _remove(self, memory: Memory) -> None:
        self.known.pop(memory.id, None)
        self.changes.updated.pop(memory.id, None)
        self.changes.links = [new for new in self.changes.links if memory.id not in (new.source_id, new.target_id)]
        self.result.removed += 1
        for place, fresh in enumerate(self.changes.new):
            if fresh.id == memory.id:
                del self.changes.new[place], self.changes.vectors[place]
                return
        self.changes.removed[memory.id] = memory

    def _bury(self, tombstone: Tombstone) -> None:
        self.tombstones.append(tombstone)
        self.changes.tombstones.append(tombstone)


def covers(grave: Tombstone, user_id: str, memory_id: uuid.UUID, created_at: int) -> bool:
    """Whether the memory is forgotten by this tombstone."""
    return grave.user_id == user_id and (
        grave.memory_id == memory_id or (grave.memory_id is None and created_at <= grave.forgotten_at)
    )


def _named_ids(events: Sequence[LongTermEvent]) -> set[uuid.UUID]:
    """Ids of the memories that the events speak of."""
    ids: set[uuid.UUID] = set()
    for event in events:
        match event:
            case Touch():
                ids.update(event.memory_ids)
            case Link() | Unlink():
                ids.update((event.source_id, event.target_id))
            case Remember():
                ids.add(event.memory_id or event.event_id)
            case ForgetUser():
                pass
            case _:
                ids.add(event.memory_id)
    return ids
