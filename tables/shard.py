"""The long-term store of one partition: a DuckDB catalog and a FAISS index, kept in step.

DuckDB commits first; the index follows. A crash in between is mended at the next opening, when the index is
compared with the catalog's vectors, number by number.
"""

from __future__ import annotations

import logging
import uuid
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from schemas.events import LongTermEvent
from schemas.memories import Memory, State, Transition
from schemas.settings import LifecycleSettings, LongTermSettings
from tables.analytics import Fingerprint
from tables.batch import Applied, Batch, covers
from tables.catalog import Catalog
from tables.statistics import Change
from tables.vectors import VectorIndex, Vectors, cell_of, cells_of

log = logging.getLogger(__name__)

CACHED_USERS = 1024
_REBUILD_ROWS = 10_000


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
            index.add(part, cells_of(users), vectors)
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
        batch = Batch(self._catalog, self._index, self._settings, self._next, fresh, vectors)
        applied = batch.run()
        applied.repeated += len(events) - len(fresh)
        changes = batch.changes
        self._catalog.write(changes, now)
        self._next += applied.new
        self._index.remove(np.array([memory.seq for memory in changes.removed.values()], np.int64))
        if changes.new:
            self._index.add(
                np.array([memory.seq for memory in changes.new], np.int64),
                cells_of([memory.user_id for memory in changes.new]),
                np.stack(changes.vectors),
            )
        self._unsaved = self._unsaved or bool(changes.new or changes.removed)
        for event in fresh:
            self._users.pop(event.user_id, None)
        return applied

    def forgotten(self, memories: Sequence[tuple[str, uuid.UUID, int]]) -> list[bool]:
        """Whether a tombstone forbids each of these (user, memory id, epoch ms of its creation)."""
        graves = self._catalog.tombstones({user_id for user_id, _, _ in memories})
        return [any(covers(grave, *memory) for grave in graves) for memory in memories]

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
        users = self._catalog.ageing.recompute(now, lifecycle)
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
        return self._catalog.ageing.unpublished()

    def mark_published(self, count: int) -> None:
        self._catalog.ageing.mark_published(count)

    def count(self) -> int:
        """How many memories it holds."""
        return self._catalog.count()

    def state_counts(self, now: int, lifecycle: LifecycleSettings) -> dict[State, int]:
        return self._catalog.ageing.state_counts(now, lifecycle)

    def score_points(self, now: int, lifecycle: LifecycleSettings) -> dict[int, int]:
        return self._catalog.ageing.score_points(now, lifecycle)

    def daily_transitions(self, since: int, now: int) -> dict[Change, int]:
        return self._catalog.ageing.daily_transitions(since, now)

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
