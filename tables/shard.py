"""The long-term store of one partition: a DuckDB catalog and a FAISS index, kept in step.

DuckDB commits first; the index follows. A crash in between is mended at the next opening, when the index is
compared with the catalog's vectors, number by number.
"""

from __future__ import annotations

import logging
import uuid
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

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
from schemas.memories import Memory, State, Transition
from schemas.settings import LifecycleSettings, LongTermSettings
from tables.analytics import Fingerprint
from tables.catalog import Catalog, Changes, NewLink, Tombstone
from tables.statistics import Change
from tables.vectors import Seqs, VectorIndex, Vectors, cell_of, earlier_copies

log = logging.getLogger(__name__)

CACHED_USERS = 1024
_REBUILD_ROWS = 10_000


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


class Shard:
    """Memories of the users of one partition. Not thread-safe: its owner serialises the calls.

    `model` and `dimension` are those of the vectors that it will be given. Raises `ShardLocked`,
    `EmbeddingMismatch` and `DataDirError`.
    """

    def __init__(self, partition: int, folder: Path, model: str, dimension: int, settings: LongTermSettings) -> None:
        self.partition = partition
        self._settings = settings
        self._index_path = folder / "vectors.faiss"
        self._catalog = Catalog(folder / "catalog.duckdb", partition)
        try:
            self._catalog.bind_model(model, dimension)
            self._next = self._catalog.next_seq()
            self._index = self._recovered_index(dimension)
            self.save()  # a removed number is given again: no older file may know it when it is
        except BaseException:
            self._catalog.close()
            raise
        self._users: OrderedDict[str, tuple[Memory, ...]] = OrderedDict()

    def _recovered_index(self, dimension: int) -> VectorIndex:
        index = VectorIndex.load(self._index_path, dimension)
        if index is None:
            if self._index_path.exists():
                log.warning("shard %d: %s cannot be read and is rebuilt", self.partition, self._index_path.name)
            index = VectorIndex(dimension)
        rows, held = self._catalog.seqs(), index.seqs()
        index.remove(np.setdiff1d(held, rows))
        missing = np.setdiff1d(rows, held)
        for start in range(0, len(missing), _REBUILD_ROWS):
            part = missing[start : start + _REBUILD_ROWS]
            users, vectors = self._catalog.vectors(part)
            index.add(part, _cells(users), vectors)
        self._unsaved = bool(len(missing)) or len(held) != len(index)
        if len(missing) and len(held):
            log.info("shard %d: %d vectors added to the index", self.partition, len(missing))
        return index

    def unapplied(self, events: Sequence[LongTermEvent]) -> list[LongTermEvent]:
        """Those events that are not in yet, each id once, in their order."""
        seen = self._catalog.applied({event.event_id for event in events})
        fresh = []
        for event in events:
            if event.event_id not in seen:
                seen.add(event.event_id)
                fresh.append(event)
        return fresh

    def apply(self, events: Sequence[LongTermEvent], vectors: Mapping[uuid.UUID, Vectors], now: int) -> Applied:
        """Apply events in their order, in one transaction; those that are in already change nothing.

        `vectors` holds a unit vector, float32[d], for each promotion and remember, by event id. `now` (epoch
        ms) is noted beside the event's id.
        """
        fresh = self.unapplied(events)
        if not fresh:
            return Applied(repeated=len(events))
        batch = _Batch(self, fresh, vectors)
        applied = batch.run()
        applied.repeated += len(events) - len(fresh)
        changes = batch.changes
        self._catalog.write(changes, now)
        self._next += applied.new
        self._index.remove(np.array([memory.seq for memory in changes.removed.values()], np.int64))
        if changes.new:
            self._index.add(
                np.array([memory.seq for memory in changes.new], np.int64),
                _cells([memory.user_id for memory in changes.new]),
                np.stack(changes.vectors),
            )
        self._unsaved = self._unsaved or bool(changes.new or changes.removed)
        for event in fresh:
            self._users.pop(event.user_id, None)
        return applied

    def forgotten(self, memories: Sequence[tuple[str, uuid.UUID, int]]) -> list[bool]:
        """Whether a tombstone forbids each of these (user, memory id, epoch ms of its creation)."""
        graves = self._catalog.tombstones({user_id for user_id, _, _ in memories})
        return [any(_covers(grave, *memory) for grave in graves) for memory in memories]

    def memories_of(self, user_id: str) -> tuple[Memory, ...]:
        """A user's memories, oldest first. The same object until one of them changes."""
        found = self._users.get(user_id)
        if found is None:
            found = self._users[user_id] = tuple(self._catalog.of_user(user_id))
            if len(self._users) > CACHED_USERS:
                self._users.popitem(last=False)
        self._users.move_to_end(user_id)
        return found

    def similarities(self, user_id: str, query: Vectors, memories: Sequence[Memory]) -> Vectors:
        """Cosine, float32[n], of the query vector with each of the user's memories."""
        seqs = np.array([memory.seq for memory in memories], np.int64)
        return self._index.similarities(cell_of(user_id), query, seqs)

    def recompute(self, now: int, lifecycle: LifecycleSettings) -> int:
        """Store the states as of `now` (epoch ms); the number of users whose memories changed state."""
        users = self._catalog.recompute(now, lifecycle)
        for user_id in users:
            self._users.pop(user_id, None)
        return len(users)

    def rating(self, memory_id: uuid.UUID, model: str) -> int | None:
        """What the model answered when it was asked about this exchange; None where it was not."""
        return self._catalog.rating(memory_id, model)

    def keep_rating(self, memory_id: uuid.UUID, model: str, value: int, now: int) -> None:
        """Note a model's answer (epoch ms): a replay asks nobody twice."""
        self._catalog.keep_rating(memory_id, model, value, now)

    def unpublished(self) -> list[Transition]:
        return self._catalog.unpublished()

    def mark_published(self, count: int) -> None:
        self._catalog.mark_published(count)

    def count(self) -> int:
        """How many memories it holds."""
        return self._catalog.count()

    def state_counts(self, now: int, lifecycle: LifecycleSettings) -> dict[State, int]:
        return self._catalog.state_counts(now, lifecycle)

    def score_points(self, now: int, lifecycle: LifecycleSettings) -> dict[int, int]:
        return self._catalog.score_points(now, lifecycle)

    def daily_transitions(self, since: int, now: int) -> dict[Change, int]:
        return self._catalog.daily_transitions(since, now)

    def export(self, folder: Path, copied: Fingerprint | None) -> tuple[Fingerprint, frozenset[str]] | None:
        """Stage the rows for the analysts' copy, and which tables those are; None where all is as `copied`."""
        return self._catalog.export(folder, copied)

    def newest_event(self) -> int:
        return self._catalog.newest_event()

    def save(self) -> None:
        """Write the index to its file if it changed since; the catalog needs no saving."""
        if self._unsaved:
            self._index.save(self._index_path)
            self._unsaved = False

    def close(self) -> None:
        """Save and let go of the files."""
        try:
            self.save()
        finally:
            self._catalog.close()


@dataclass(slots=True)
class _Batch:
    """Works out the changes of some events, one after the other, before anything is written."""

    shard: Shard
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
        catalog = self.shard._catalog
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
                stored = self.shard._catalog.of_user(event.user_id)
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
            seq=self.shard._next + self.result.new,
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
        cosine = self.shard._settings.near_copy
        vectors = np.stack([self.vectors[event.event_id] for event in events])
        near = self.shard._index.near(_cells([event.user_id for event in events]), vectors, cosine)
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
        return any(_covers(grave, memory.user_id, memory.id, memory.created_at) for grave in self.tombstones)

    def _mine(self, event: LongTermEvent, *ids: uuid.UUID) -> list[Memory]:
        """Those of the memories that are there and the event's user's; what others own does not exist."""
        found = [memory for i in ids if (memory := self.known.get(i)) is not None and memory.user_id == event.user_id]
        self.result.unknown += len(ids) - len(found)
        return found

    def _accessed(self, memory: Memory, at: int) -> Memory:
        increment = self.shard._settings.access_increment
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


def _covers(grave: Tombstone, user_id: str, memory_id: uuid.UUID, created_at: int) -> bool:
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


def _cells(users: Sequence[str]) -> Seqs:
    cells = {user: cell_of(user) for user in set(users)}
    return np.array([cells[user] for user in users], np.int64)
