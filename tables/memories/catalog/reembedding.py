"""Re-embedding: stores vectors of another model beside a shard's present vectors, then replaces the present ones.

    side.begin("embedder-2", 1536)
    seqs, texts = side.texts(side.missing()[:256])
    side.put(seqs, vectors)                         # float32[n, d] of the texts
    side.adopt(folder / "segments.json")            # when nothing is missing

A number (`seq`) is never reused, and a changed text gets another number. So a vector in the side table stays valid
even if the work takes long or is interrupted.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

import duckdb
import numpy as np
import pyarrow as pa

from schemas.errors import ShardError
from tables.database.migrations import transaction
from tables.database.shard_info import InfoTable
from tables.memories.catalog.archive import ArchiveTable
from tables.memories.catalog.catalog_file import CatalogFile
from tables.memories.catalog.part import Part
from tables.memories.catalog.stored_vectors import StoredVectors
from tables.paths import synced
from tables.vectors.index import Seqs, VectorIndex, Vectors, cells_of

#: Keys of `shard_info` about the next model.
_NEXT: Final = ("next_model", "next_dimension", "next_vectors_file")
#: The number of vectors that are read at a time.
_AT_A_TIME: Final = 10_000
#: A query for the numbers of all rows that have a vector: memories and archived memories.
ROWS = "SELECT seq FROM memories UNION ALL SELECT seq FROM archive"


class VectorModel(NamedTuple):
    """An embedding model as a shard records it: its name, and the dimension of its vectors."""

    name: str
    dimension: int

    def __str__(self) -> str:
        return f"{self.name} ({self.dimension} dimensions)"


class Reembedding(Part):
    """The side table `vectors_next` of a catalog with its file, and the model that `shard_info` names for it."""

    def __init__(
        self,
        file: CatalogFile,
        folder: Path,
        partition: int,
        info: InfoTable,
        vectors: StoredVectors,
        archive: ArchiveTable,
    ) -> None:
        self._partition, self._info = partition, info
        self._current, self._archive = vectors, archive
        #: The vectors of the next model that are stored already.
        self.vectors = StoredVectors(file, folder, partition, info, "vectors_next")
        super().__init__(file)
        noted = info.read()
        self._target = _vector_model(noted.next_model, noted.next_dimension)

    def connect(self, db: duckdb.DuckDBPyConnection) -> None:
        super().connect(db)
        self.vectors.connect(db)

    @property
    def model(self) -> VectorModel | None:
        """The model of the vectors that the shard uses; None if the shard has no model yet."""
        info = self._info.read()
        return _vector_model(info.model, info.dimension)

    @property
    def target(self) -> VectorModel | None:
        """The model to which the shard is being changed; None if no re-embedding has begun."""
        return self._target

    def begin(self, target: VectorModel) -> None:
        """Create the side table, or continue with the existing one. Raises `ShardError` as `refuse_other` does."""
        self.refuse_other(target)
        if self._target is None:
            with transaction(self._db):
                noted = self.vectors.begin(target.dimension)
                self._info.write(replace(noted, next_model=target.name, next_dimension=target.dimension))
            self._target = target

    def refuse_other(self, target: VectorModel) -> None:
        """Raise `ShardError` if a re-embedding with another model is unfinished.

        The vectors stored so far are not dropped without a command, because they may have taken hours to compute.
        """
        if self._target not in (None, target):
            raise ShardError(
                self._partition,
                f"a change of its vectors to those of {self._target} is half done: continue with that model, or "
                "drop the change with `siltstone reembed --abandon`",
            )

    def abandon(self) -> bool:
        """Drop the vectors of an unfinished re-embedding. Return False if no re-embedding was unfinished."""
        if self._target is None:
            return False
        with transaction(self._db):
            self._db.execute("DROP TABLE vectors_next")
            self._info.drop(*_NEXT)
        self.vectors.abandon()
        self._target = None
        return True

    def rows(self) -> int:
        """Return the number of rows with a vector, archived memories included."""
        return len(self._seqs(ROWS))

    def missing(self) -> Seqs:
        """Return the numbers of the rows that have no vector of the next model yet, ascending."""
        if self._target is None:
            return self._seqs(ROWS)
        return _without(self._seqs(ROWS), self._seqs("SELECT seq FROM vectors_next"))

    def texts(self, seqs: Seqs) -> tuple[Seqs, list[str]]:
        """Return the numbers and texts of those rows of `seqs` that still exist, by ascending number."""
        self._db.register("wanted", pa.table({"seq": seqs}))
        found = self._db.execute(
            "SELECT seq, text FROM memories WHERE seq IN (SELECT seq FROM wanted) UNION ALL "
            "SELECT seq, text FROM archive WHERE seq IN (SELECT seq FROM wanted) ORDER BY seq"
        ).fetchall()
        return np.array([seq for seq, _ in found], np.int64), [text for _, text in found]

    def put(self, seqs: Seqs, vectors: Vectors) -> None:
        """Store vectors of the next model, float32[n, d].

        Numbers whose row no longer exists, or that have a vector of the next model already, are skipped.
        """
        self._db.register("staged", pa.table({"seq": seqs}))
        wanted = self._seqs(
            f"SELECT seq FROM staged WHERE seq IN ({ROWS}) AND seq NOT IN (SELECT seq FROM vectors_next)"
        )
        rows = np.isin(seqs, wanted)
        if rows.any():
            self.vectors.add(seqs[rows], np.ascontiguousarray(vectors[rows], np.float32))

    def bring_nearer(self, index: VectorIndex, most: int) -> int:
        """Copy at most `most` vectors from the side table to an index that lacks them.

        Numbers that are not in the side table are removed from the index. Return the number of vectors that are still
        missing in the index.
        """
        rows = self._seqs("SELECT seq FROM vectors_next SEMI JOIN memories USING (seq)")
        held = index.seqs()
        index.remove(_without(held, rows))
        missing = _without(rows, held)
        part = missing[:most]
        if len(part):
            self._db.register("wanted", pa.table({"seq": part, "place": np.arange(len(part))}))
            users = self._db.execute("SELECT user_id FROM wanted JOIN memories USING (seq) ORDER BY place").fetchall()
            index.add(part, cells_of([user_id for (user_id,) in users]), self.vectors.of(part))
        return len(missing) - len(part)

    def finish(self, wanted: VectorModel, manifest: Path) -> bool:
        """Adopt the side table if it is complete and of the model `wanted`. Return whether it was adopted.

        If a worker ended when it had changed only some of its shards, its next start calls this for the others.
        """
        return self._target == wanted and self.adopt(manifest)

    def adopt(self, manifest: Path) -> bool:
        """Replace the shard's vectors by the vectors of the side table, in the archive too.

        If a row has no vector of the next model yet, return False and change nothing.

        The manifest of the segments is deleted first, and the deletion is synced to the disk. Otherwise a crash could
        leave the new vectors with the old segments. The next opening could not detect that, because both have the
        same numbers. Without a manifest, the next opening recreates the segments.
        """
        target = self._target
        if target is None or len(self.missing()):
            return False
        manifest.unlink(missing_ok=True)
        synced(manifest.parent)
        with transaction(self._db):
            archived = self._archive.seqs()
            for start in range(0, len(archived), _AT_A_TIME):
                part = archived[start : start + _AT_A_TIME]
                self._archive.put_vectors(part, self.vectors.of(part))
            self._db.execute("DELETE FROM vectors_next WHERE seq NOT IN (SELECT seq FROM memories)")
            noted = self._current.adopt(self.vectors)
            self._info.write(replace(noted, model=target.name, dimension=target.dimension))
            self._info.drop(*_NEXT)
        self._current.adopted(self.vectors)
        self._target = None
        return True

    def _seqs(self, sql: str) -> Seqs:
        return np.sort(np.asarray(self._db.execute(sql).fetchnumpy()["seq"], np.int64))


def _vector_model(name: str | None, dimension: int | None) -> VectorModel | None:
    return None if name is None or dimension is None else VectorModel(name, dimension)


def _without(seqs: Seqs, others: Seqs) -> Seqs:
    """Return those of `seqs` that are not in `others`. Without `assume_unique`, 200,000 numbers take a second."""
    return np.setdiff1d(seqs, others, assume_unique=True)
