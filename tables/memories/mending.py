"""Mending: repairs an index that lost vectors, or that belongs to another state of its catalog."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from tables.memories.catalog.catalog import Catalog
from tables.vectors.index import VectorIndex, cells_of

#: The number of missing vectors whose users are read from the catalog at a time.
_AT_A_TIME = 1 << 20


def mend(index: VectorIndex, catalog: Catalog, tell: Callable[[int, int], None]) -> None:
    """Remove vectors from the index, and add vectors, until its numbers are those of the catalog.

    Raises `DataDirError`.

    `tell` is called with the number of vectors added so far, and the number of vectors that were missing at first.
    """
    rows, held = catalog.seqs(), index.seqs()
    index.remove(np.setdiff1d(held, rows, assume_unique=True))
    missing = np.setdiff1d(rows, held, assume_unique=True)
    for start in range(0, len(missing), _AT_A_TIME):
        part = missing[start : start + _AT_A_TIME]
        users, read = catalog.vectors_later(part)
        index.fill(part, cells_of(users), read, partial(_told, tell, start, len(missing)))


def _told(tell: Callable[[int, int], None], before: int, missing: int, done: int) -> None:
    tell(before + done, missing)
