"""An index of a shard's vectors: what the shard asks of it, whichever it is.

The index is a cache of the vectors that the catalog stores. `SegmentedIndex` is the embedded one, with FAISS;
`ToyIndex` is the smallest that works.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from tables.vectors.manifest import Stamp

Seqs = npt.NDArray[np.int64]
Vectors = npt.NDArray[np.float32]

CELLS = 65_536
_BLOCK_ROWS = 512


@lru_cache(maxsize=16_384)
def cell_of(user_id: str) -> int:
    """Return the cell of a user: a stable hash of the user's id. Several users may share a cell."""
    return int.from_bytes(hashlib.blake2b(user_id.encode(), digest_size=4).digest(), "little") % CELLS


def cells_of(users: Sequence[str]) -> Seqs:
    """Return the cell of each user, int64[n]."""
    cells = {user: cell_of(user) for user in set(users)}
    return np.array([cells[user] for user in users], np.int64)


def matrix(vectors: Sequence[Vectors]) -> Vectors:
    """Stack n vectors, float32[d], n > 0, into float32[n, d]. `np.stack` takes three times as long."""
    return np.concatenate(vectors, dtype=np.float32).reshape(len(vectors), -1)


def below(cosine: float) -> float:
    """Return the greatest float32 that is less than `cosine`. A float32 above the result is at least `cosine`."""
    single = np.float32(cosine)
    return float(single) if float(single) < cosine else float(np.nextafter(single, np.float32(-2)))


def earlier_copies(vectors: Vectors, cosine: float) -> dict[int, Seqs]:
    """For each row of float32[n, d], return the earlier rows whose cosine with it is at least `cosine`, ascending.

    A row has no entry if there are no such earlier rows.
    """
    copies: dict[int, Seqs] = {}
    for start in range(0, len(vectors), _BLOCK_ROWS):
        block = vectors[start : start + _BLOCK_ROWS]
        near = np.tril(block @ vectors[: start + len(block)].T > below(cosine), start - 1)
        for row in np.flatnonzero(near.any(axis=1)):
            copies[start + int(row)] = np.flatnonzero(near[row])
    return copies


#: A function that takes places in a list of numbers, int64[n], and returns the vectors there, float32[n, d].
ReadVectors = Callable[[npt.NDArray[np.int64]], Vectors]


class VectorIndex(Protocol):
    """The vectors of a shard's memories. Not thread-safe: the shard serialises the calls.

    All are unit vectors, so inner products are cosines. Each has its memory's number (`seq`) and a cell. All vectors
    of a user are in one cell, which other users may share: it only says which vectors are needed together. The rows
    of the catalog say whose a memory is.
    """

    dimension: int

    def __len__(self) -> int: ...

    def seqs(self) -> Seqs:
        """Return the numbers of all vectors, ascending."""

    def similarities(self, cell: int, query: Vectors, seqs: Seqs) -> Vectors:
        """Return the cosine of `query`, float32[d], with each vector of `seqs` in a cell, in the order of `seqs`.

        The cosine is 0 for a missing vector.
        """

    def near(self, cells: Seqs, queries: Vectors, cosine: float) -> dict[int, list[int]]:
        """For each row of `queries`, float32[n, d], return the numbers of near vectors in the row's cell, ascending.

        A vector is near if its cosine with the row is at least `cosine`. A row without near vectors has no entry.
        """

    def add(self, seqs: Seqs, cells: Seqs, vectors: Vectors) -> None:
        """Add vectors, float32[n, d]. Raises ValueError if the dimension differs."""

    def remove(self, seqs: Seqs) -> None:
        """Remove the vectors with these numbers, also from the disk."""

    def fill(self, seqs: Seqs, cells: Seqs, read: ReadVectors, tell: Callable[[int], None]) -> None:
        """Add many vectors, which need not fit in memory. `tell` gets the number of vectors added so far."""

    def verify(self, seqs: Seqs) -> bool:
        """Return whether the index has vectors of exactly these numbers, which ascend."""

    @property
    def bytes(self) -> int:
        """The bytes that the index takes on the disk and in memory, beside the catalog's file of vectors."""

    # files

    def load(self, fits: Callable[[Stamp], bool], stamp: Callable[[Stamp | None], Stamp], changes: int) -> bool:
        """Open the index of a catalog. Return True if it has exactly the vectors of the catalog.

        `changes` is the catalog's number of changes, and `fits` says whether a stamp belongs to it. `stamp` makes the
        next one. If the result is False, the caller must compare the index with the catalog.
        """

    def note(self, changes: int | None) -> None:
        """Record that the index has exactly the catalog's vectors after this number of changes. Raises OSError.

        If `changes` is None, record that it may differ from the catalog.
        """

    def tidy(self) -> None:
        """Do what is due: call it once a minute. It takes milliseconds."""

    def flush(self) -> None:
        """Write all vectors to the disk, and wait for it. Vectors for which the disk has no room stay in memory."""

    def erase(self) -> None:
        """Erase all removed vectors from the disk, and sync it. Raises `DataDirError`."""

    def close(self, changes: int | None) -> None:
        """Write what is only in memory, and record `changes`, as `note` does. Raises `DataDirError`."""

    def publish(self, stamp: Callable[[Stamp | None], Stamp]) -> None:
        """Become the catalog's index on the disk, instead of the former one. Raises `DataDirError`."""

    def discard(self) -> None:
        """Close the index, and remove its files."""


class NewIndex(Protocol):
    """Makes an empty index of a shard. `name` is for log lines."""

    def __call__(self, folder: Path, dimension: int, name: str) -> VectorIndex: ...
