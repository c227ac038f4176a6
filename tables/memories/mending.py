"""Mending: repairs an index that lost vectors, or that belongs to another state of its catalog.

A few missing vectors are added like new ones. If many are missing, as after a restore, they are copied from the
catalog's file of vectors directly into a segment.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tables.memories.catalog.catalog import Catalog
from tables.memories.catalog.stored_vectors import ReadVectors
from tables.vectors.index import Seqs, cells_of
from tables.vectors.merging import MOST_ROWS
from tables.vectors.segmented import SegmentedIndex

_AT_A_TIME = 10_000


def mend(index: SegmentedIndex, catalog: Catalog, tell: Callable[[int, int], None]) -> None:
    """Remove vectors from the index, and add vectors, until its numbers are those of the catalog.

    Raises `DataDirError`.

    `tell` is called with the number of vectors added so far, and the number of vectors that were missing at first.
    """
    rows, held = catalog.seqs(), index.seqs()
    index.remove(np.setdiff1d(held, rows, assume_unique=True))
    missing = np.setdiff1d(rows, held, assume_unique=True)
    done = 0
    while len(missing) - done >= index.enough and _built(index, catalog, part := missing[done : done + MOST_ROWS]):
        done += len(part)
        tell(done, len(missing))
    for start in range(done, len(missing), _AT_A_TIME):
        part = missing[start : start + _AT_A_TIME]
        users, vectors = catalog.vectors(part)
        index.add(part, cells_of(users), vectors)
        tell(start + len(part), len(missing))


def _built(index: SegmentedIndex, catalog: Catalog, seqs: Seqs) -> bool:
    users, read = catalog.vectors_later(seqs)
    return index.build(_StoredLists(seqs, cells_of(users), read))


class _StoredLists:
    """The vectors in the catalog's file, grouped by cell. They are the source of a segment."""

    def __init__(self, seqs: Seqs, cells: Seqs, read: ReadVectors) -> None:
        self._order = np.argsort(cells, kind="stable")
        self._seqs, self._read = seqs, read
        self.cells, starts, sizes = np.unique(cells[self._order], return_index=True, return_counts=True)
        self.sizes: Seqs = sizes.astype(np.int64)
        self._starts = starts

    def pieces(self, place: int) -> tuple[list[Any], list[Any]]:
        start = self._starts[place]
        rows = self._order[start : start + self.sizes[place]]
        return [self._read(rows)], [self._seqs[rows]]
