"""Stored vectors: the file of a catalog's vectors, and a table with each memory's slot in the file.

Vectors are on the disk before the transaction that names their slots commits. So the file has every slot that the
table names. Slots after these belong to a batch that was never committed, and the next opening cuts them off. A slot
is never used for a second vector, so it stays valid for an older copy of the table; it is overwritten only to forget
its vector. When a quarter of the slots is unused, `tidy` copies the vectors into a new file with the next number.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from schemas.errors import DataDirError, ShardError
from tables.database.migrations import transaction
from tables.database.shard_info import InfoTable, ShardInfo
from tables.memories.catalog.catalog_file import CatalogFile
from tables.memories.catalog.hold import Hold
from tables.memories.catalog.part import Part
from tables.vectors.index import ReadVectors, Seqs, Vectors
from tables.vectors.vector_file import HEAD_BYTES, Digests, Head, Slots, VectorFile, digests, path_of

log = logging.getLogger(__name__)

_AT_A_TIME: Final = 10_000
#: The minimum number of unused slots of a file that `tidy` compacts.
_WORTH_IT: Final = 1_024


class _Named(NamedTuple):
    """Rows of the table: the numbers of vectors, their slots, and their digests at the time of writing."""

    seqs: Seqs
    slots: Slots
    digests: Digests


class StoredVectors(Part):
    """The table `vectors` (seq, slot, digest) and its file, or the table `vectors_next`, for a re-embedding.

    Changes of the table are part of the catalog's transactions. Raises `ShardError` if the file is missing, and
    `DataDirError` if the disk fails.
    """

    def __init__(
        self,
        file: CatalogFile,
        folder: Path,
        partition: int,
        info: InfoTable,
        table: Literal["vectors", "vectors_next"] = "vectors",
    ) -> None:
        self.table, self._folder, self._partition, self._info = table, folder, partition, info
        self._vectors: VectorFile | None = None
        self._end = 0
        #: Keeps the files unchanged while they are copied.
        self.hold: Hold | None = None
        super().__init__(file)
        try:
            self._open()
            self._take_over()
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        info = self._info.read()
        number = info.vectors_file if self.table == "vectors" else info.next_vectors_file
        dimension = info.dimension if self.table == "vectors" else info.next_dimension
        if number is None or dimension is None:
            return
        ((end,),) = self._db.execute(f"SELECT coalesce(max(slot) + 1, 0) FROM {self.table}").fetchall()
        if end and not path_of(self._folder, number).exists():
            raise ShardError(
                self._partition,
                f"{path_of(self._folder, number)}, the file of its vectors, is missing: put the file back, restore "
                "the whole folder from a backup, or rebuild the shard with `siltstone replay --into`",
            )
        self._vectors, self._end = self._made(number, dimension), end
        if self._vectors.slots < end:
            log.warning(
                "shard %d: %s is too short: vectors at its end are missing", self._partition, self._vectors.path.name
            )
        self._vectors.keep(end)

    def _made(self, number: int, dimension: int) -> VectorFile:
        identity = self._info.read().identity
        assert identity is not None, "a migration writes it"
        return VectorFile(self._folder, Head(identity, number, dimension))

    def begin(self, dimension: int) -> ShardInfo:
        """Create the table and its file, for vectors float32[dimension], within the caller's transaction.

        Return the `shard_info` that the caller must write.
        """
        number = self._next_number()
        self.close()
        self._vectors = self._made(number, dimension)
        self._vectors.keep(0)
        self._db.execute(
            f"CREATE TABLE {self.table} (seq BIGINT NOT NULL, slot BIGINT NOT NULL, digest UBIGINT NOT NULL)"
        )
        return ShardInfo(vectors_file=number) if self.table == "vectors" else ShardInfo(next_vectors_file=number)

    def _next_number(self) -> int:
        info = self._info.read()
        return max(info.vectors_file or 0, info.next_vectors_file or 0) + 1

    def _take_over(self) -> None:
        """Move vectors that an older version stored in the catalog into the file, in one transaction."""
        before = f"{self.table}_before"
        held = self._db.execute("SELECT table_name FROM duckdb_tables() WHERE table_name = ?", [before]).fetchall()
        if not held:
            return
        info = self._info.read()
        dimension = info.dimension if self.table == "vectors" else info.next_dimension
        assert dimension is not None, "it is noted with the table"
        log.info("shard %d: its vectors are moved into a file of their own", self._partition)
        numbers = np.sort(self._db.execute(f"SELECT seq FROM {before}").fetchnumpy()["seq"].astype(np.int64))
        with transaction(self._db):
            noted = self.begin(dimension)
            for start in range(0, len(numbers), _AT_A_TIME):
                part = numbers[start : start + _AT_A_TIME]
                found: pa.Table = self._db.sql(
                    f"SELECT seq, vector FROM {before} WHERE seq BETWEEN {part[0]:d} AND {part[-1]:d}"
                ).to_arrow_table()
                lists = found.column("vector").combine_chunks()
                flat = np.asarray(lists.flatten().to_numpy(zero_copy_only=False), np.float32)
                self.add(found.column("seq").to_numpy(), flat.reshape(-1, dimension))
            self._db.execute(f"DROP TABLE {before}")
            self._info.write(noted)

    def add(self, seqs: Seqs, vectors: Vectors) -> None:
        """Store vectors, float32[n, d], under these numbers, within the caller's transaction."""
        assert self._vectors is not None, "`begin` comes first"
        self._vectors.put(self._end, vectors)
        slots = np.arange(self._end, self._end + len(seqs))
        self._end += len(seqs)
        staging = pa.table({"seq": seqs, "slot": slots, "digest": digests(vectors)})
        assert staging.num_rows == len(seqs)
        self._db.execute(self._parsed[f"INSERT INTO {self.table} SELECT seq, slot, digest FROM staging"])

    def of(self, seqs: Seqs) -> Vectors:
        """Return the vectors, float32[n, d], in the order of `seqs`. A missing vector is all zeros."""
        assert self._vectors is not None, "`begin` comes first"
        found = np.zeros((len(seqs), self._vectors.head.dimension), np.float32)
        named = self._named(seqs)
        found[_places(named.seqs, seqs)] = self._whole(named, self._vectors.read(named.slots))
        return found

    def reader(self, seqs: Seqs) -> ReadVectors:
        """Return a function that reads vectors like `of`, for some of these numbers at a time, without a query.

        The function takes places in `seqs`. It is valid until the next write to the table or the file. Raises
        KeyError if a vector is missing.
        """
        assert self._vectors is not None, "`begin` comes first"
        named, of_slots = self._named(seqs), self._vectors.reader()
        if len(named.seqs) != len(seqs):
            raise KeyError("some of these numbers have no vectors")
        order = np.empty(len(seqs), np.int64)
        order[_places(named.seqs, seqs)] = np.arange(len(seqs))

        def read(places: npt.NDArray[np.int64]) -> Vectors:
            asked = order[places]
            some = _Named(named.seqs[asked], named.slots[asked], named.digests[asked])
            return self._whole(some, of_slots(some.slots))

        return read

    def _whole(self, named: _Named, vectors: Vectors) -> Vectors:
        """Set each vector to zero whose digest differs from the digest in the table.

        A search can then find its memory only by words.
        """
        assert self._vectors is not None
        lost = digests(vectors) != named.digests
        if lost.any():
            log.warning(
                "shard %d: %s lacks %d vectors that its catalog lists: the two are from different moments",
                self._partition,
                self._vectors.path.name,
                np.count_nonzero(lost),
            )
            vectors[lost] = 0
        return vectors

    def _named(self, seqs: Seqs) -> _Named:
        staging = pa.table({"seq": seqs})
        assert staging.num_rows == len(seqs)
        found = self._db.execute(
            self._parsed[f"SELECT seq, slot, digest FROM {self.table} SEMI JOIN staging USING (seq)"]
        ).fetchnumpy()
        return _Named(
            np.asarray(found["seq"], np.int64),
            np.asarray(found["slot"], np.int64),
            np.asarray(found["digest"], np.uint64),
        )

    def slots_of(self, seqs: Sequence[int]) -> Slots:
        """Return the slots of these numbers, in any order. Numbers without a vector are left out."""
        if self._vectors is None or not seqs:
            return np.empty(0, np.int64)
        return self._named(np.array(seqs, np.int64)).slots

    def wipe(self, slots: Slots) -> None:
        """Overwrite these slots with zeros. Call it after the commit that deletes their rows.

        During a hold, this is postponed until the hold ends. If the disk fails, a later call of `tidy` erases them.
        """
        if self._vectors is None or not len(slots):
            return
        if self.hold is not None and self.hold.later(partial(self.wipe, slots)):
            return
        try:
            self._vectors.wipe(slots)
        except DataDirError as exc:
            log.warning("shard %d: forgotten vectors stay in their file for now: %s", self._partition, exc)

    def tidy(self) -> None:
        """Erase all vectors that no row names. If it raises `DataDirError`, the present file stays in use."""
        if self._vectors is None:
            return
        self._vectors.keep(self._end)
        held = np.sort(np.asarray(self._db.execute(f"SELECT slot FROM {self.table}").fetchnumpy()["slot"], np.int64))
        free = self._end - len(held)
        if free >= _WORTH_IT and 4 * free >= self._end:
            self._bring_together(held)
        elif free:
            self._vectors.wipe(np.setdiff1d(np.arange(self._end), held, assume_unique=True))
            self._vectors.sync()

    def _bring_together(self, held: Slots) -> None:
        old = self._vectors
        assert old is not None
        fresh = self._made(self._next_number(), old.head.dimension)
        try:
            fresh.keep(0)
            for start in range(0, len(held), _AT_A_TIME):
                fresh.put(start, old.read(held[start : start + _AT_A_TIME]))
            staging = pa.table({"slot": held, "to_slot": np.arange(len(held))})
            with transaction(self._db):
                self._db.execute(
                    self._parsed[
                        f"UPDATE {self.table} SET slot = to_slot FROM staging WHERE {self.table}.slot = staging.slot"
                    ]
                )
                number = fresh.head.number
                mine = self.table == "vectors"
                self._info.write(ShardInfo(vectors_file=number) if mine else ShardInfo(next_vectors_file=number))
        except BaseException:
            fresh.close()
            raise
        assert staging.num_rows == len(held)
        self._vectors, self._end = fresh, len(held)
        old.remove()

    def adopt(self, other: StoredVectors) -> ShardInfo:
        """Replace this table by the table of `other`, within the caller's transaction.

        Return the `shard_info` that the caller must write.
        """
        assert other._vectors is not None, "it has vectors of all memories"
        self._db.execute(f"DROP TABLE {self.table}")
        self._db.execute(f"ALTER TABLE {other.table} RENAME TO {self.table}")
        return ShardInfo(vectors_file=other._vectors.head.number)

    def adopted(self, other: StoredVectors) -> None:
        """Replace this file by the file of `other`. Call it after the transaction of `adopt` is committed."""
        self._end_hold()
        if self._vectors is not None:
            self._vectors.remove()
        self._vectors, self._end = other._vectors, other._end
        other._vectors, other._end = None, 0

    def abandon(self) -> None:
        """Remove the file of vectors. Call it after the transaction that drops the table is committed."""
        self._end_hold()
        if self._vectors is not None:
            self._vectors.remove()
        self._vectors, self._end = None, 0

    def _end_hold(self) -> None:
        if self.hold is not None:
            self.hold.end()

    @property
    def held(self) -> tuple[Path, int] | None:
        """The path of the file, and the bytes up to the end of its last used slot; None if there is no file."""
        if self._vectors is None:
            return None
        return self._vectors.path, HEAD_BYTES + 4 * self._end * self._vectors.head.dimension

    @property
    def file_number(self) -> int | None:
        """The number in the name of the file; None if there is no file."""
        return None if self._vectors is None else self._vectors.head.number

    def close(self) -> None:
        """Release the file. A second call does nothing."""
        if self._vectors is not None:
            self._vectors.close()
            self._vectors, self._end = None, 0


def _places(seqs: Seqs, among: Seqs) -> npt.NDArray[np.int64]:
    """Return the place of each of `seqs` in `among`, which may be in any order."""
    order = np.argsort(among, kind="stable")
    return order[np.searchsorted(among[order], seqs)]


def drop_other_files(folder: Path, numbers: Sequence[int | None]) -> None:
    """Remove vector files that a crash has left. `numbers` are the numbers of the files in use."""
    kept = {path_of(folder, number) for number in numbers if number is not None}
    for path in folder.glob("vectors-*.f32"):
        if path not in kept:
            path.unlink()
