"""An index of vectors is made what its catalog says, whatever of it was lost, or is of another moment."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tables.catalog.catalog import Catalog
from tables.vectors.index import cells_of
from tables.vectors.segmented import SegmentedIndex

_AT_A_TIME = 10_000


def mend(index: SegmentedIndex, catalog: Catalog, tell: Callable[[int, int], None]) -> None:
    """Compare them number by number; `tell` hears how many missing vectors were added, of how many.

    Raises `DataDirError`.
    """
    rows, held = catalog.seqs(), index.seqs()
    index.remove(np.setdiff1d(held, rows, assume_unique=True))
    missing = np.setdiff1d(rows, held, assume_unique=True)
    for start in range(0, len(missing), _AT_A_TIME):
        part = missing[start : start + _AT_A_TIME]
        users, vectors = catalog.vectors(part)
        index.add(part, cells_of(users), vectors)
        tell(start + len(part), len(missing))
