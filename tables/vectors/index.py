"""The FAISS index of one shard: an inverted file whose cells are users, not learned clusters.

A query looks into its user's cell alone, so results are exact and cost what that user's memories cost,
however many others there are. The index is a cache of the stored vectors: lost or damaged, it is rebuilt.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import os
import struct
import uuid
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from schemas.errors import DataDirError

# faiss-cpu annotates its C++ side only in part: the constructors and pointers used here are not in its stubs.
faiss: Any = importlib.import_module("faiss")

Seqs = npt.NDArray[np.int64]
Vectors = npt.NDArray[np.float32]

CELLS = 65_536
_BLOCK_ROWS = 512


class Stamp(NamedTuple):
    """What a file of vectors belongs to: a shard, and a state of its catalog (a random number, never 0)."""

    shard: uuid.UUID
    generation: int


#: At the end of the file, where FAISS does not look: a mark, the shard, the generation.
_STAMP: Final = struct.Struct("<8s16sQ")
_MARK: Final = b"SltVecs1"


@lru_cache(maxsize=16_384)
def cell_of(user_id: str) -> int:
    """The cell of a user: a stable hash. Users may share a cell; searches select by id, too."""
    return int.from_bytes(hashlib.blake2b(user_id.encode(), digest_size=4).digest(), "little") % CELLS


def cells_of(users: Sequence[str]) -> Seqs:
    """The cell of each user, int64[n]."""
    cells = {user: cell_of(user) for user in set(users)}
    return np.array([cells[user] for user in users], np.int64)


def matrix(vectors: Sequence[Vectors]) -> Vectors:
    """float32[n, d] of n vectors, float32[d]; at least one. `np.stack` takes three times as long."""
    return np.concatenate(vectors, dtype=np.float32).reshape(len(vectors), -1)


def below(cosine: float) -> float:
    """The greatest float32 under `cosine`: what is above it is at least `cosine`."""
    single = np.float32(cosine)
    return float(single) if float(single) < cosine else float(np.nextafter(single, np.float32(-2)))


def earlier_copies(vectors: Vectors, cosine: float) -> dict[int, Seqs]:
    """The earlier rows of float32[n, d] that are at least so near to a row, ascending; no entry where none is."""
    copies: dict[int, Seqs] = {}
    for start in range(0, len(vectors), _BLOCK_ROWS):
        block = vectors[start : start + _BLOCK_ROWS]
        near = np.tril(block @ vectors[: start + len(block)].T > below(cosine), start - 1)
        for row in np.flatnonzero(near.any(axis=1)):
            copies[start + int(row)] = np.flatnonzero(near[row])
    return copies


class VectorIndex:
    """Vectors of one dimension by memory number (`seq`), in cells. Inner product of unit vectors: cosine."""

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        #: How many vectors came and went since the file was read or written.
        self.unsaved = 0
        self._index = self._empty()
        #: Of cells that were asked for: asking FAISS takes ten times as long, and every new memory's is asked for.
        self._sizes: dict[int, int] = {}

    def _empty(self) -> Any:
        quantizer = faiss.IndexFlatIP(self.dimension)
        index = faiss.IndexIVFFlat(quantizer, self.dimension, CELLS, faiss.METRIC_INNER_PRODUCT)
        index.own_fields = True
        quantizer.this.disown()
        index.is_trained = True  # cells are given with the vectors; there is nothing to learn
        return index

    def __len__(self) -> int:
        return int(self._index.ntotal)

    def add(self, seqs: Seqs, cells: Seqs, vectors: Vectors) -> None:
        """Add vectors, float32[n, d]. Raises ValueError where the dimension differs."""
        if vectors.shape != (len(seqs), self.dimension):
            raise ValueError(f"vectors of shape {vectors.shape} do not fit dimension {self.dimension}")
        if not len(seqs):
            return
        seqs, cells = np.ascontiguousarray(seqs, np.int64), np.ascontiguousarray(cells, np.int64)
        vectors = np.ascontiguousarray(vectors, np.float32)
        self._index.add_core(len(seqs), faiss.swig_ptr(vectors), faiss.swig_ptr(seqs), faiss.swig_ptr(cells))
        self.unsaved += len(seqs)
        for cell in cells.tolist():
            if cell in self._sizes:
                self._sizes[cell] += 1

    def remove(self, seqs: Seqs) -> None:
        if len(seqs):
            self._sizes.clear()
            self.unsaved += int(self._index.remove_ids(np.ascontiguousarray(seqs, np.int64)))

    def seqs_in(self, cell: int) -> Seqs:
        """The numbers of a cell's vectors, whoever's, in no order."""
        lists = self._index.invlists
        size = lists.list_size(cell)
        return faiss.rev_swig_ptr(lists.get_ids(cell), size).copy() if size else np.empty(0, np.int64)

    def size_of(self, cell: int) -> int:
        """How many vectors lie in a cell, whoever's."""
        size = self._sizes.get(cell)
        if size is None:
            size = self._sizes[cell] = int(self._index.invlists.list_size(cell))
        return size

    def similarities(self, cell: int, query: Vectors, seqs: Seqs) -> Vectors:
        """Cosine of `query`, float32[d], with the vectors of `seqs`, in their order; 0 where one is missing."""
        found = np.zeros(len(seqs), np.float32)
        if not len(seqs):
            return found
        seqs = np.ascontiguousarray(seqs, np.int64)
        selector = faiss.IDSelectorBatch(seqs)
        parameters = faiss.IVFSearchParameters(sel=selector, nprobe=1)
        distances = np.empty((1, len(seqs)), np.float32)
        labels = np.empty((1, len(seqs)), np.int64)
        cells, coarse = np.array([[cell]], np.int64), np.zeros((1, 1), np.float32)
        query = np.ascontiguousarray(query, np.float32).reshape(1, -1)
        self._index.search_preassigned_c(
            1,
            faiss.swig_ptr(query),
            len(seqs),
            faiss.swig_ptr(cells),
            faiss.swig_ptr(coarse),
            faiss.swig_ptr(distances),
            faiss.swig_ptr(labels),
            False,
            parameters,
        )
        order = np.argsort(seqs, kind="stable")
        hit = labels[0] >= 0
        found[order[np.searchsorted(seqs[order], labels[0][hit])]] = distances[0][hit]
        return found

    def nearest(self, cell: int, query: Vectors, k: int) -> list[tuple[int, float]]:
        """The `k` nearest of a cell, of whichever user: (seq, cosine), nearest first."""
        cells, coarse = np.array([[cell]], np.int64), np.zeros((1, 1), np.float32)
        query = np.ascontiguousarray(query, np.float32).reshape(1, -1)
        distances, labels = self._index.search_preassigned(query, k, cells, coarse)
        return [(int(seq), float(cosine)) for seq, cosine in zip(labels[0], distances[0], strict=True) if seq >= 0]

    def near(self, cells: Seqs, queries: Vectors, cosine: float) -> dict[int, list[int]]:
        """By row of the queries, float32[n, d], all that is so near in its cell, whoever's: seqs, ascending.

        All of it is one call: at a thousand users in a batch, a matrix product for each takes four times as long,
        most of it around the products. There is no entry where nothing is so near.
        """
        if not len(self):
            return {}
        cells, queries = cells.reshape(-1, 1), np.ascontiguousarray(queries, np.float32)
        ends, _, seqs = self._index.range_search_preassigned(queries, below(cosine), cells, None)
        return {
            int(row): np.sort(seqs[int(ends[row]) : int(ends[row + 1])]).tolist()
            for row in np.flatnonzero(np.diff(ends.astype(np.int64)))
        }

    def seqs(self) -> Seqs:
        """The numbers of all vectors, ascending."""
        probes, self._index.nprobe = self._index.nprobe, CELLS
        try:  # all that is nearer than infinitely far, of all cells: one call, where asking each cell takes 65,536
            _, _, found = self._index.range_search_preassigned(
                np.zeros((1, self.dimension), np.float32), -np.inf, np.arange(CELLS).reshape(1, -1), None
            )
        finally:
            self._index.nprobe = probes
        return np.sort(found)

    def save(self, path: Path, stamp: Stamp) -> None:
        """Write the file whole or not at all. Raises `DataDirError`."""
        fresh = _draft(path)
        try:
            faiss.write_index(self._index, str(fresh))
            with fresh.open("ab") as written:
                written.write(_STAMP.pack(_MARK, stamp.shard.bytes, stamp.generation))
                written.flush()
                os.fsync(written.fileno())
            fresh.replace(path)
        except (RuntimeError, OSError) as exc:  # its own text is of the library's inside
            fresh.unlink(missing_ok=True)
            raise DataDirError(path, "the index cannot be written (is the disk full?)") from exc
        self.unsaved = 0

    @classmethod
    def load(cls, path: Path, dimension: int) -> VectorIndex | None:
        """The saved index, or None where there is none that is whole and can be read with this dimension."""
        if stamp_of(path) is None:
            return None
        try:
            loaded = faiss.read_index(str(path))
        except RuntimeError:
            return None
        if not isinstance(loaded, faiss.IndexIVFFlat) or loaded.d != dimension or loaded.nlist != CELLS:
            return None
        index = cls(dimension)
        index._index = loaded
        return index


def drop_draft(path: Path) -> None:
    """Remove what a crash left of a writing of the file at `path`."""
    _draft(path).unlink(missing_ok=True)


def _draft(path: Path) -> Path:
    return path.with_suffix(".tmp")


def stamp_of(path: Path) -> Stamp | None:
    """What the file at `path` belongs to; None where there is none, or none that says so."""
    with contextlib.suppress(OSError), path.open("rb") as file:
        file.seek(-min(_STAMP.size, path.stat().st_size), os.SEEK_END)
        if len(end := file.read()) == _STAMP.size:
            mark, shard, generation = _STAMP.unpack(end)
            return Stamp(uuid.UUID(bytes=shard), generation) if mark == _MARK else None
    return None
