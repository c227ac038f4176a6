"""The long-term store of one partition: a DuckDB catalog, and a FAISS index of the catalog's vectors.

Each change is first committed in DuckDB, then applied to the index. After a crash in between, the next opening
compares the index with the catalog's vectors, by number (`seq`), and repairs the index. After an orderly close, the
comparison is not needed. If the catalog or the segments come from an older copy, all segments are rebuilt, because
their numbers may belong to other memories.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, tzinfo
from pathlib import Path

import duckdb
import numpy as np

from schemas.errors import DataDirError
from schemas.events import Forget, ForgetUser, LongTermEvent
from schemas.memories import Memory
from schemas.settings import LifecycleSettings, LongTermSettings, Updates
from schemas.times import now_ms
from tables.analysts.copy import Fingerprint
from tables.database.database import ALONE
from tables.memories.applied import Applied
from tables.memories.batch import Batch
from tables.memories.batching import together
from tables.memories.bounds import Bounds
from tables.memories.catalog.catalog import Catalog
from tables.memories.catalog.changes import Changes
from tables.memories.catalog.reembedding import VectorModel
from tables.memories.committing import Commit
from tables.memories.frozen import Frozen, snapshot_files
from tables.memories.mending import mend
from tables.memories.workspace import Workspaces
from tables.reached import CATALOG
from tables.search.archived_rows import ArchivedRows
from tables.search.candidates import Candidates
from tables.search.held import Held
from tables.search.recent import Recent
from tables.search.search_rows import SearchRows
from tables.search.window_rows import SaidRow
from tables.vectors import manifest
from tables.vectors.index import NewIndex, VectorIndex, Vectors, cell_of
from tables.vectors.manifest import Stamp
from tables.vectors.segmented import PUT_OFF, SegmentedIndex

log = logging.getLogger(__name__)

_REBUILD_ROWS = 10_000
#: The number of rows after which a rebuild of the index logs its progress. They take one or two seconds.
_TOLD_ROWS = 100_000

#: Files in which older versions stored the index. Segments replace them.
_OLDER = ("vectors.faiss", "vectors.tmp")
#: The maximum size, in bytes, of a catalog that can be rewritten while callers of the shard wait. Its rewrite takes a
#: few seconds.
_SMALL_CATALOG = 256 * 1024 * 1024


class Shard:
    """The memories of one partition's users. Not thread-safe: the caller serialises the calls.

    `model` and `dimension` describe the vectors that `apply` gets. All shards of a worker share the cache `recent`.
    `memory` is the memory limit of this shard's database, in bytes. Times in texts are read in `zone`. Raises
    `ShardLocked`, `EmbeddingMismatch` and `DataDirError`.
    """

    def __init__(
        self,
        partition: int,
        folder: Path,
        model: str,
        dimension: int,
        settings: LongTermSettings,
        lifecycle: LifecycleSettings,
        recent: Recent | None = None,
        memory: int = ALONE,
        new_index: NewIndex = SegmentedIndex,
        updates: Updates = "rank",
        zone: tzinfo = UTC,
    ) -> None:
        recent = Recent() if recent is None else recent
        self.partition = partition
        self._settings, self._lifecycle, self._updates = settings, lifecycle, updates
        self._folder, self._new_index = folder, new_index
        self._catalog = Catalog(folder / CATALOG, partition, memory)
        try:
            self._catalog.reembedding.finish(VectorModel(model, dimension), folder / manifest.NAME)
            self._catalog.bind_model(model, dimension)
            self._bounds = Bounds(self._catalog.users, settings.max_memories_per_user)
            self.index = self._recovered_index(dimension)
            self.rows = SearchRows(folder, self._catalog, recent, zone)
        except BaseException:
            self._catalog.close()
            raise
        catalog = self._catalog
        self.ageing, self.cleanup, self.retention = catalog.ageing, catalog.cleanup, catalog.retention
        self.archive, self.archive_rows = catalog.archive, ArchivedRows(catalog.archive, recent)
        self.erasures, self.reembedding = catalog.erasures, catalog.reembedding
        self.history, self.links, self.ratings = catalog.history, catalog.links, catalog.ratings
        self.users, self.watermarks = catalog.users, catalog.watermarks
        self._erasing_put_off = 0
        #: True if the index and the rows lack changes of the catalog, because a step of a commit failed.
        self._behind = False
        self._saved_changes = catalog.changes
        catalog.rest()

    def _recovered_index(self, dimension: int) -> VectorIndex:
        index = self.index_beside(dimension)
        if not index.load(self._catalog.fits, self._next_stamp, self._catalog.changes):
            mend(index, self._catalog, self._tell)
            try:
                index.note(None)
            except OSError as exc:
                log.warning("shard %d: %s", self.partition, exc)
        for older in (self._folder / name for name in _OLDER if (self._folder / name).exists()):
            log.info("shard %d: %s of an older version was replaced by segments", self.partition, older.name)
            index.flush()  # vectors reveal texts, so the old file must be deleted
            older.unlink()
        return index

    def _next_stamp(self, held: Stamp | None) -> Stamp:
        try:
            return self._catalog.next_stamp(held)
        except duckdb.Error as exc:
            raise DataDirError(self._folder, f"its catalog cannot be written: {str(exc).splitlines()[0]}") from exc

    def _tell(self, done: int, missing: int) -> None:
        if done % _TOLD_ROWS == 0 or done == missing:
            log.info("shard %d: %d of %d missing vectors added to the index", self.partition, done, missing)

    def unapplied(self, events: Sequence[LongTermEvent]) -> list[LongTermEvent]:
        """Return the events that are not applied yet, in their order.

        If several events of a user have the same id, only the first of them is returned.
        """
        names = [(event.user_id, event.event_id) for event in events]
        several = set(names)
        seen = self._catalog.applied(several)
        if not seen and len(several) == len(events):
            return list(events)
        fresh = []
        for name, event in zip(names, events, strict=True):
            if name not in seen:
                seen.add(name)
                fresh.append(event)
        return fresh

    def apply(
        self,
        events: Sequence[LongTermEvent],
        vectors: Mapping[uuid.UUID, Vectors],
        now: int,
        position: int | None = None,
        log_end: int | None = None,
    ) -> Applied:
        """Apply events in their order, each completely or not at all. Events that are applied already change nothing.

        `vectors` has a unit vector, float32[d], by event id, for each promotion, remember and edit of a text. `now`
        (epoch ms) is stored with each event's id. `position` is the offset in the log after these events. If the log
        has earlier events that are not applied yet, pass the offset as `log_end` and not as `position`.
        """
        fresh = self.unapplied(events)
        applied = Applied(repeated=len(events) - len(fresh), fresh=fresh)
        left: Sequence[LongTermEvent] = fresh
        while left:
            spaces = Workspaces(self._catalog, self._lifecycle, self._catalog.next_seq)
            batch = Batch(
                *(spaces, self.index, self._settings, together(left), vectors, self._bounds, self.rows, now),
                updates=self._updates,
            )
            applied.add(batch.run())
            done = len(spaces.changes.applied)
            spaces.changes.log_end = log_end if position is None else position
            self._commit(spaces.changes, now, position if done == len(left) else None)
            self._bounds.follow(spaces.changes)
            if spaces.changes.changes_archive:
                self.archive_rows.forget(spaces.keys())
            left = left[done:]
        if not fresh and position is not None and position != self._catalog.position:
            self._commit(Changes(), now, position)
        return applied

    def forget_ahead(self, events: Sequence[Forget | ForgetUser], now: int) -> None:
        """Apply forget commands before the events that precede them in the log, and erase the data from every file.

        No tombstones are written, because those earlier events are not applied yet. `apply` writes the tombstones
        when it gets the commands again, at their place in the log.
        """
        spaces = Workspaces(self._catalog, self._lifecycle, self._catalog.next_seq)
        Batch(spaces, self.index, self._settings, events, {}, self._bounds, self.rows, now).run()
        spaces.changes.applied, spaces.changes.tombstones = [], []
        self._commit(spaces.changes, now, None)
        self._erase()

    def position(self) -> int:
        """Return the offset in the log up to which the events are applied; 0 in a new shard."""
        return self._catalog.position

    def _commit(self, changes: Changes, now: int, position: int | None) -> None:
        if self._behind:
            raise DataDirError(
                self._folder, "its index lacks changes, because a write failed: restart the worker, which repairs it"
            )
        before = self._catalog.changes
        try:
            Commit(self._catalog, self.rows, self.index, changes, now, position).run()
        except BaseException:
            self._behind = self._catalog.changes != before
            raise

    def forgotten(self, memories: Sequence[tuple[str, uuid.UUID, int]]) -> list[bool]:
        """Return for each memory (user, id, creation time in epoch ms) whether a tombstone covers it."""
        held, now = self._catalog.tombstones({user_id for user_id, _, _ in memories}), now_ms()
        tombstones = [tombstone.as_of(now) for tombstone in held]
        return [any(one.covers(*memory) for one in tombstones) for memory in memories]

    def memories_of(self, user_id: str) -> tuple[Memory, ...]:
        """Return a user's memories, oldest first. Calls return the same tuple while it is cached and unchanged."""
        if self._behind:  # the rows may lack changes
            return tuple(self._catalog.of_user(user_id))
        return self.rows.memories_of(user_id)

    def memory_of(self, user_id: str, memory_id: uuid.UUID) -> Memory | None:
        """Return the user's memory with this id, or the memory into which a near-copy with this id was merged."""
        held = {memory.id: memory for memory in self.memories_of(user_id)}
        return held.get(memory_id) or held.get(self.stands_for(user_id, memory_id))

    def held(self, user_id: str) -> Held:
        """Return the user's rows for a search, oldest first. They are valid until the shard's next change."""
        return self.rows.of_user(user_id)

    def speakers_of(self, user_id: str) -> frozenset[str] | None:
        """Return the names of the speakers in the user's memories; None if there are no memories."""
        held = self.held(user_id)
        return held.speakers if len(held) else None

    def without_memory(self, user_id: str, said: Sequence[SaidRow]) -> list[SaidRow]:
        """Return the exchanges that neither became a memory nor were forgotten.

        An exchange whose promotion was applied became a memory, even if that memory was merged, archived or removed.
        """
        ids = self._catalog.ids
        known = ids.known([row.id for row in said]) | ids.known([row.event_id for row in said])
        new = [row for row, held in zip(said, known.tolist(), strict=True) if not held]
        forgotten = self.forgotten([(user_id, row.id, row.exchange.started_at) for row in new])
        return [row for row, gone in zip(new, forgotten, strict=True) if not gone]

    def cosines(self, user_id: str, query: Vectors, candidates: Candidates) -> Vectors:
        """Return the cosine, float32[n], of the query vector with each of the candidates."""
        return self.index.similarities(cell_of(user_id), query, candidates.seqs)

    def stands_for(self, user_id: str, memory_id: uuid.UUID) -> uuid.UUID:
        """Return the id of the memory into which this near-copy was merged; `memory_id` if it is no near-copy."""
        return self._catalog.merged([(user_id, memory_id)]).get((user_id, memory_id), memory_id)

    def resembling(self, memory: Memory, memories: Sequence[Memory]) -> Vectors:
        """Return the cosine of a memory with each of `memories`, float32[n]. All must be of the same user."""
        _, vectors = self._catalog.vectors(np.array([memory.seq], np.int64))
        return self.similarities(memory.user_id, vectors[0], memories)

    def similarities(self, user_id: str, query: Vectors, memories: Sequence[Memory]) -> Vectors:
        """Return the cosine, float32[n], of the query vector with each of the user's memories."""
        seqs = np.array([memory.seq for memory in memories], np.int64)
        return self.index.similarities(cell_of(user_id), query, seqs)

    def recompute(self, now: int, lifecycle: LifecycleSettings) -> int:
        """Store the states as of `now` (epoch ms). Return the number of users whose memories changed state."""
        users = self._catalog.recompute(now, lifecycle, self.rows.outdate)
        self.rows.follow()
        self._catalog.rest()
        return len(users)

    def count(self) -> int:
        """Return the number of memories, without archived ones."""
        return self._catalog.count()

    def export(self, folder: Path, copied: Fingerprint | None) -> tuple[Fingerprint, frozenset[str]] | None:
        """Write the rows to staged files for the analysts' copy: see `Catalog.export`."""
        return self._catalog.export(folder, copied, self.rows.spoken.stored())

    @property
    def changes(self) -> int:
        """A counter that every commit of changes increases by one. It is 0 in a new shard."""
        return self._catalog.changes

    @property
    def in_pages(self) -> bool:
        """True if the catalog's file may still contain forgotten data. A rewrite of the file removes the data."""
        return self._catalog.to_erase

    def freeze(self) -> Frozen:
        """Keep the files unchanged until `thaw`, so that they can be copied. The shard stays in use.

        Forgetting and closing do not wait for `thaw`: they break the hold. Raises `duckdb.Error`.
        """
        held = self._catalog.hold()
        model = self._catalog.reembedding.model
        assert model is not None, "it is noted at the opening"
        return Frozen(
            self._catalog.position,
            self._catalog.changes,
            self._catalog.to_erase,
            model,
            snapshot_files(self._catalog.held_files),
            held,
        )

    def thaw(self, frozen: Frozen) -> None:
        """End the hold that `freeze` began, so that the files may change again."""
        self._catalog.release(frozen.held)

    def adopt(self, index: VectorIndex) -> bool:
        """Replace the shard's vectors by the vectors of the next model, and return True.

        If a memory has no vector of the next model yet, return False and replace nothing. `index` becomes the shard's
        index, after the vectors that it lacks are added to it. The call is short if it has most of them already.
        """
        while self.reembedding.bring_nearer(index, _REBUILD_ROWS):
            pass
        adopted = self.reembedding.adopt(self._folder / manifest.NAME)
        if adopted:
            self.index.discard()
            self.index = index
            self.archive_rows.forget_all()
            try:
                index.publish(self._next_stamp)
            except DataDirError as exc:  # without a manifest the next opening rebuilds the segments
                log.warning("%s", exc)
        return adopted

    def index_beside(self, dimension: int) -> VectorIndex:
        """Return an empty index, to be filled for `adopt`. No manifest names its segments.

        So the caller must discard the index if it is not adopted.
        """
        return self._new_index(self._folder, dimension, f"shard {self.partition}")

    def limit_memory(self, memory: int) -> None:
        """Limit the catalog to `memory` bytes of memory from now on."""
        self._catalog.limit_memory(memory)

    def in_step(self) -> bool:
        """Return whether the catalog and the index have vectors of the same memories."""
        return self.index.verify(self._catalog.seqs())

    def save(self) -> None:
        """Seal new vectors into segments, and erase forgotten data from the files when the shard is idle.

        The catalog is saved by each commit. Sealing or merging that takes more than milliseconds runs on its own
        thread. Vectors that the segments lack after a crash are added at the next opening.
        """
        self.index.tidy()
        if self._catalog.to_erase:
            self._erase_in_time()
        self._saved_changes = self._catalog.changes

    def _erase_in_time(self) -> None:
        """Erase the forgotten data now, or postpone the erasure, but at most `PUT_OFF` times in a row.

        The data is erased now if the catalog is small and nothing changed since the last save.
        """
        quiet = self._catalog.changes == self._saved_changes
        if (quiet and self._catalog.bytes <= _SMALL_CATALOG) or self._erasing_put_off == PUT_OFF:
            self._erase()
        else:
            self._erasing_put_off += 1

    def _erase(self) -> None:
        """Rewrite the files without any byte of forgotten data. If the disk is full, the data stays for now."""
        self._erasing_put_off = 0
        try:
            self.index.erase()
            self.rows.erase()
            self._catalog.erase()
        except DataDirError as exc:
            log.warning("shard %d: forgotten data stays in pages of the catalog for now: %s", self.partition, exc)
        else:
            log.info("shard %d: the catalog was rewritten without forgotten data", self.partition)

    def close(self) -> None:
        """Save and release the files.

        Forgotten data is erased now if the catalog is small. Otherwise the partition's next owner erases the data.
        """
        try:
            if self._catalog.to_erase and self._catalog.bytes <= _SMALL_CATALOG:
                self._erase()
            self.index.close(None if self._behind else self._catalog.changes)
        finally:
            try:
                self.rows.close()
            finally:
                self.archive_rows.forget_all()
                self._catalog.close()
                # A reference to a closed shard, as in a cancelled call's traceback, must not keep its parts.
                vars(self).clear()
