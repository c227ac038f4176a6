"""The archive of one shard: memories, with vectors, that only a search of the archive finds."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from schemas.memories import Memory
from tables.memories.catalog.columns import texts, uuids
from tables.memories.catalog.memory_rows import COLUMNS, STORED, memory_of
from tables.memories.catalog.part import Part
from tables.vectors.index import Seqs, Vectors


class ToArchive(NamedTuple):
    """A memory to be archived: its number, the time of the archiving (epoch ms), and the reason."""

    seq: int
    archived_at: int
    reason: str


@dataclass(frozen=True, slots=True)
class Archived:
    """An archived memory, with the time (`at`, epoch ms) and the reason of the archiving."""

    memory: Memory
    at: int
    reason: str


class ArchiveTable(Part):
    """The table `archive` of a catalog. Changes of the table are part of the catalog's transactions."""

    def find(self, user_id: str, memory_id: uuid.UUID) -> Memory | None:
        """Return the user's archived memory with this id; None if there is none."""
        found = self.by_id([(user_id, memory_id)])
        return found[0] if found else None

    def by_id(self, names: Collection[tuple[str, uuid.UUID]]) -> list[Memory]:
        """Return the archived memories with these pairs of user and id. Pairs without a memory are left out."""
        wanted = {"user_id": texts([user_id for user_id, _ in names]), "id": uuids(identity for _, identity in names)}
        self._db.register("wanted", pa.table(wanted))
        rows = self._db.execute(f"SELECT {COLUMNS} FROM archive SEMI JOIN wanted USING (id, user_id)").fetchall()
        return [memory_of(row) for row in rows]

    def of_user(self, user_id: str) -> list[Memory]:
        """Return the user's archived memories, oldest first."""
        return [archived.memory for archived in self.listed(user_id)]

    def listed(self, user_id: str) -> list[Archived]:
        """Return the user's archived memories, oldest first, with time and reason of the archiving."""
        rows = self._db.execute(
            f"SELECT {COLUMNS}, epoch_ms(archived_at), reason FROM archive WHERE user_id = ? "
            "ORDER BY created_at, seq",
            [user_id],
        ).fetchall()
        return [Archived(memory_of(row[:-2]), *row[-2:]) for row in rows]

    def by_seq(self, seqs: Sequence[int]) -> list[Memory]:
        """Return the archived memories with these numbers, in the order of `seqs`; all must exist."""
        if not len(seqs):
            return []
        self._db.register("wanted", pa.table({"seq": pa.array(seqs, pa.int64())}))
        rows = self._db.execute(f"SELECT {COLUMNS} FROM archive WHERE seq IN (SELECT seq FROM wanted)").fetchall()
        found = {memory.seq: memory for memory in map(memory_of, rows)}
        return [found[seq] for seq in seqs]

    def vectors(self, seqs: Sequence[int]) -> Vectors:
        """Return the vectors of these archived memories, float32[n, d], in the order of `seqs`; all must exist."""
        wanted = pa.table({"seq": pa.array(seqs, pa.int64()), "place": np.arange(len(seqs))})
        self._db.register("wanted", wanted)
        found: pa.Table = self._db.sql(
            "SELECT vector FROM archive JOIN wanted USING (seq) ORDER BY place"
        ).to_arrow_table()
        assert found.num_rows == len(seqs), "a vector is missing in the archive"
        lists = found.column("vector").combine_chunks()
        return np.asarray(lists.flatten().to_numpy(zero_copy_only=False), np.float32).reshape(len(seqs), -1)

    def count(self) -> int:
        ((number,),) = self._db.execute("SELECT count(*) FROM archive").fetchall()
        return int(number)

    def put(self, leaving: Sequence[ToArchive], vectors: Vectors) -> None:
        """Copy these memories into the archive, with their vectors, float32[n, d].

        The caller deletes their rows in the table `memories`.
        """
        columns = pa.Table.from_pylist([row._asdict() for row in leaving])
        self._db.register("staged", columns.append_column("vector", lists_of(vectors)))
        self._db.execute(
            f"INSERT INTO archive ({STORED}, vector, archived_at, reason) "
            f"SELECT {STORED}, vector, make_timestamp_ms(archived_at), reason FROM staged JOIN memories USING (seq)"
        )

    def seqs(self) -> Seqs:
        """Return the numbers of all archived memories, ascending."""
        return np.sort(np.asarray(self._db.execute("SELECT seq FROM archive").fetchnumpy()["seq"], np.int64))

    def put_vectors(self, seqs: Seqs, vectors: Vectors) -> None:
        """Replace the vectors of these archived memories by `vectors`, float32[n, d], in the order of `seqs`."""
        self._db.register("staged", pa.table({"seq": seqs, "vector": lists_of(vectors)}))
        self._db.execute("UPDATE archive SET vector = staged.vector FROM staged WHERE archive.seq = staged.seq")


def lists_of(vectors: Vectors) -> pa.Array:
    """Convert vectors, float32[n, d], to an Arrow column for DuckDB's type FLOAT[]."""
    count, dimension = vectors.shape
    return pa.ListArray.from_arrays(np.arange(count + 1, dtype=np.int32) * dimension, pa.array(vectors.ravel()))
