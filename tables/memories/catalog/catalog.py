"""Catalog: the DuckDB rows of one shard, the materialised state of its partition's memories."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from schemas.errors import EmbeddingMismatch
from schemas.memories import Memory
from schemas.settings import LifecycleSettings
from tables.analysts.copy import NO_TIMES, Fingerprint, StoredTimes, export
from tables.database.database import ALONE
from tables.database.migrations import migrate, transaction
from tables.database.shard_info import InfoTable, ShardInfo
from tables.memories.catalog.ageing import Ageing, Before
from tables.memories.catalog.archive import ArchiveTable
from tables.memories.catalog.catalog_file import CatalogFile
from tables.memories.catalog.changes import Changes
from tables.memories.catalog.cleanup import Cleanup
from tables.memories.catalog.columns import table_of
from tables.memories.catalog.damage import drop_kept
from tables.memories.catalog.erasing import Erasing, named_table
from tables.memories.catalog.erasures import Erasures
from tables.memories.catalog.history import History
from tables.memories.catalog.hold import Held, Hold
from tables.memories.catalog.ids import Ids
from tables.memories.catalog.links import Links
from tables.memories.catalog.memory_rows import STORED, staged
from tables.memories.catalog.part import Part
from tables.memories.catalog.queries import CatalogQueries
from tables.memories.catalog.ratings import Ratings
from tables.memories.catalog.reembedding import Reembedding
from tables.memories.catalog.retention import Retention
from tables.memories.catalog.stored_vectors import StoredVectors, drop_other_files
from tables.memories.catalog.users import Users
from tables.memories.catalog.watermarks import Watermarks
from tables.vectors.index import ReadVectors, Vectors
from tables.vectors.manifest import Stamp


class Catalog(CatalogQueries):
    """One shard's `catalog.duckdb`. Not thread-safe: the shard serialises its use.

    `memory` is DuckDB's memory limit, in bytes. Raises `ShardLocked`, `ShardError` and `DataDirError`.
    """

    def __init__(self, path: Path, partition: int, memory: int = ALONE) -> None:
        self.partition = partition
        file = CatalogFile(path, partition, memory)
        super().__init__(file)
        self._vector_files: list[StoredVectors] = []
        self._hold = Hold(file)
        try:
            migrate(file.db, partition)
            self.info = InfoTable(file.db)
            info = self.info.read()
            assert info.next_seq is not None, "a migration writes it"
            #: The number of the next new row; a number is never reused.
            self.next_seq = info.next_seq
            #: The offset in the log up to which the events are applied; 0 in a new shard.
            self.position = info.position or 0
            #: A counter that every commit of changes increases by one. It is 0 in a new shard.
            self.changes = info.changes or 0
            self.ids = Ids(file)
            self.ageing = Ageing(file, self.info)
            self.archive, self.history, self.links = ArchiveTable(file), History(file), Links(file)
            self._vectors = StoredVectors(file, path.parent, partition, self.info)
            self._vector_files.append(self._vectors)
            self.reembedding = Reembedding(file, path.parent, partition, self.info, self._vectors, self.archive)
            self._vector_files.append(self.reembedding.vectors)
            for vectors in self._vector_files:
                vectors.hold = self._hold
            drop_other_files(path.parent, [vectors.file_number for vectors in self._vector_files])
            self._erasing, self.erasures = Erasing(file, self.info, self.reembedding), Erasures(file, self.info)
            self.cleanup, self.retention = Cleanup(file), Retention(file, self.info)
            self.users, self.watermarks = Users(file, self.ids), Watermarks(file, self.ids)
            self.ratings = Ratings(file)
        except BaseException:
            self.close()
            raise

    @property
    def to_erase(self) -> bool:
        """True if the file's pages or its write-ahead log may still contain forgotten data."""
        return bool(self.info.read().to_erase)

    def erase(self) -> None:
        """Rewrite the files so that they contain existing rows only. This takes as long as a copy of the files.

        Files that are kept of a damaged shard are removed. Raises `DataDirError` if they cannot be removed, or if the
        disk has no room for a copy; the old file then stays in use.
        """
        drop_kept(self._file.path.parent)
        self._hold.end()
        for vectors in self._vector_files:
            vectors.tidy()
        try:
            self._file.rewrite()
        finally:
            if self._db is not self._file.db:
                self.connect(self._file.db)
                for part in vars(self).values():
                    if isinstance(part, Part | InfoTable):
                        part.connect(self._file.db)

    def hold(self) -> Held:
        """Write all commits into the files. From then on, the bytes of `held_files` do not change.

        The hold lasts until `release`, or until a memory is forgotten or a file is replaced.
        """
        return self._hold.begin()

    def release(self, held: Held | None = None) -> None:
        """End the hold `held`, or the present hold if no argument is given."""
        self._hold.end(held)

    @property
    def held_files(self) -> list[tuple[Path, int]]:
        """The authoritative files, and the number of bytes to copy of each. All other files are caches."""
        files = [vectors.held for vectors in self._vector_files]
        return [(self._file.path, self.bytes), *(file for file in files if file is not None)]

    @property
    def bytes(self) -> int:
        """The size of the DuckDB file, in bytes."""
        return self._file.path.stat().st_size

    def limit_memory(self, memory: int) -> None:
        """Limit DuckDB to `memory` bytes of memory from now on."""
        self._file.limit_memory(memory)

    def close(self) -> None:
        """Release the files. A second call does nothing."""
        self._hold.end()
        for vectors in self._vector_files:
            vectors.close()
        self._file.close()

    def bind_model(self, model: str, dimension: int) -> None:
        """Record the model of a new shard's vectors. Raises `EmbeddingMismatch` if another model is recorded."""
        info = self.info.read()
        if info.model is None:
            with transaction(self._db):
                noted = self._vectors.begin(dimension)
                self.info.write(replace(noted, model=model, dimension=dimension))
        elif (info.model, info.dimension) != (model, dimension):
            raise EmbeddingMismatch(
                self.partition,
                f"its vectors come from {info.model} ({info.dimension} dimensions), not from {model} "
                f"({dimension}): set `embedding` back, or run `siltstone reembed`",
            )

    def vectors(self, seqs: npt.NDArray[np.int64]) -> tuple[list[str], npt.NDArray[np.float32]]:
        """Return the user ids, and the vectors, float32[n, d], of these memories, in the order of `seqs`."""
        return self._users_of(seqs), self._vectors.of(seqs)

    def vectors_later(self, seqs: npt.NDArray[np.int64]) -> tuple[list[str], ReadVectors]:
        """Return the user ids of these memories, in the order of `seqs`, and a function that reads their vectors.

        The function takes places in `seqs`.
        """
        return self._users_of(seqs), self._vectors.reader(seqs)

    def _users_of(self, seqs: npt.NDArray[np.int64]) -> list[str]:
        self._db.register("wanted", pa.table({"seq": seqs, "place": np.arange(len(seqs))}))
        users = self._db.execute("SELECT user_id FROM wanted JOIN memories USING (seq) ORDER BY place").fetchall()
        return [user_id for (user_id,) in users]

    def next_stamp(self, held: Stamp | None) -> Stamp:
        """Return a stamp for a new manifest of the index, which will replace one with the stamp `held`.

        From now on, manifests with either stamp fit, because a crash may prevent the write of the new manifest.
        """
        identity = self.info.read().identity
        assert identity is not None, "a migration writes it"
        stamp = Stamp(identity, secrets.randbits(62) + 1)
        before = held.generation if held is not None and self.fits(held) else 0
        with transaction(self._db):
            self.info.write(ShardInfo(index=stamp.generation, index_before=before))
        return stamp

    def fits(self, stamp: Stamp | None) -> bool:
        """Return whether a manifest with this stamp fits this catalog.

        The stamp must be the newest one, or the one before it.
        """
        if stamp is None:
            return False
        info = self.info.read()
        return stamp.shard == info.identity and stamp.generation in (info.index or 0, info.index_before or 0)

    def write(self, changes: Changes, now: int, position: int | None = None) -> None:
        """Commit a batch in one transaction: rows, the vectors' slots, the applied event ids and the position."""
        self.ids.add(changes)
        going = [*changes.leaving, *changes.unarchived]
        before = [vectors.slots_of(going) for vectors in self._vector_files]
        with transaction(self._db):
            if changes.new:
                self._insert(list(changes.new.values()), changes.matrix())
            if changes.updated:
                self._update(list(changes.updated.values()))
                into = {(one.user_id, one.into_id) for one in changes.merged}
                self._add_sources([one for one in changes.updated.values() if into and (one.user_id, one.id) in into])
                self.ageing.touched(memory.seq for memory in changes.updated.values())
            if changes.archived:
                leaving = np.array([row.seq for row in changes.archived], np.int64)
                self.archive.put(changes.archived, self._vectors.of(leaving))
            self._erasing.erase(changes.leaving, changes.unarchived, changes.forgotten, changes.forgotten_users)
            self._write_links(changes)
            self._note(changes)
            if changes.applied:
                self._over(
                    named_table(changes.applied),
                    "INSERT INTO applied SELECT id, make_timestamp_ms(?), user_id, ? FROM staging",
                    now,
                    changes.log_end if position is None else position,
                )
            done = ShardInfo(next_seq=self.next_seq + changes.numbered, position=position, changes=self.changes + 1)
            self.info.write(done)
        self.next_seq += changes.numbered
        self.changes += 1
        if position is not None:
            self.position = position
        if changes.forgotten or changes.forgotten_users:
            self._hold.end()
        if going:
            for vectors, slots in zip(self._vector_files, before, strict=True):
                vectors.wipe(np.setdiff1d(slots, vectors.slots_of(going)))

    def recompute(self, now: int, lifecycle: LifecycleSettings, before: Before) -> list[str]:
        """Store the states as of `now` (epoch ms), by `Ageing.recompute`. Return the users whose memories changed."""
        users = self.ageing.recompute(now, lifecycle, before)
        self.changes += bool(users)
        return users

    def _append(self, table: str, rows: Sequence[NamedTuple], columns: str = "*") -> None:
        """Insert all rows with one statement."""
        if rows:
            self._over(table_of(rows), f"INSERT INTO {table} SELECT {columns} FROM staging")

    def _insert(self, memories: Sequence[Memory], vectors: Vectors) -> None:
        self._over(staged(memories), f"INSERT INTO memories ({STORED}) SELECT * FROM staging")
        self._vectors.add(np.array([memory.seq for memory in memories], np.int64), vectors)

    def _update(self, memories: Sequence[Memory]) -> None:
        self._over(
            staged(memories),
            "UPDATE memories SET importance = staging.importance, "
            "last_accessed = staging.last_accessed, access_count = staging.access_count, "
            "pinned = staging.pinned, meta = staging.meta, summarized_by = staging.summarized_by, "
            "superseded_by = staging.superseded_by, valid_from = staging.valid_from, valid_to = staging.valid_to "
            "FROM staging WHERE memories.seq = staging.seq",
        )

    def _add_sources(self, memories: Sequence[Memory]) -> None:
        """Update the message ids of these memories, whose sources changed.

        `_update` does not write message ids, because an update of a list makes DuckDB rewrite the whole row.
        """
        if memories:
            sources = {memory.seq: list(memory.message_ids) for memory in memories}
            lists = pa.array(list(sources.values()), pa.list_(pa.string()))
            self._over(
                pa.table({"seq": list(sources), "message_ids": lists}),
                "UPDATE memories SET message_ids = staging.message_ids FROM staging WHERE memories.seq = staging.seq",
            )

    def _write_links(self, changes: Changes) -> None:
        if changes.unlinked:
            self._over(
                table_of(changes.unlinked),
                "DELETE FROM links USING staging WHERE links.user_id = staging.user_id "
                "AND links.source_id = staging.source_id "
                "AND links.target_id = staging.target_id AND links.kind = staging.kind",
            )
        self._append("links", changes.links)

    def _note(self, changes: Changes) -> None:
        """Append the batch's near-copies, transitions, history entries and tombstones to their tables."""
        self._append("merged", changes.merged)
        self._append("transitions", changes.moves, "*, false")
        self._append("history", changes.history)
        self._append("tombstones", changes.tombstones)

    def export(
        self, folder: Path, copied: Fingerprint | None, spoken: StoredTimes = NO_TIMES
    ) -> tuple[Fingerprint, frozenset[str]] | None:
        """Write the rows to staged files for the analysts' copy. Return the new fingerprint and the exported tables.

        If nothing changed since the fingerprint `copied`, write nothing and return None.
        """
        now = Fingerprint.of(self._file.path, spoken.version)
        if now == copied:
            return None
        exported = export(self._db, self.partition, folder, spoken.windows())
        self.rest()
        return now, exported
