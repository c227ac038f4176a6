"""The FAISS file of a shard that nobody has open, made anew from the vectors in its catalog."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from schemas.errors import DataDirError, ShardError
from tables.catalog.catalog import Catalog
from tables.vectors.index import Seqs, VectorIndex, cells_of, stamp_of

#: Vectors that are read at a time.
ROWS = 5_000


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What an index holds now. `was`: how its file was found, `missing`, `damaged`, `stale` or `in step`."""

    partition: int
    model: str
    dimension: int
    rows: int
    bytes: int
    was: str


def rebuild_index(partition: int, path: Path, tell: Callable[[int, int], None]) -> Rebuilt | None:
    """Rebuild the index beside the catalog at `path`; None where the shard has never held a vector.

    `tell` hears how many vectors are in, of how many. The old file stays until the new one is whole, and the new one
    is read again: its numbers must be the catalog's. Raises `ShardLocked`, `ShardError` and `DataDirError`.
    """
    place = path.with_name("vectors.faiss")
    catalog = Catalog(path, partition)
    try:
        model = catalog.reembedding.model
        if model is None:
            return None
        rows = catalog.seqs()
        was = _found(catalog, place, model.dimension, rows)
        index = VectorIndex(model.dimension)
        tell(0, len(rows))
        for start in range(0, len(rows), ROWS):
            part = rows[start : start + ROWS]
            users, vectors = catalog.vectors(part)
            index.add(part, cells_of(users), vectors)
            tell(start + len(part), len(rows))
        try:
            index.save(place, catalog.next_stamp(stamp_of(place)))
        except (RuntimeError, OSError) as exc:  # faiss's own says which line of its code could not write
            raise DataDirError(place.parent, "the index cannot be written; look at the disk") from exc
        if _found(catalog, place, model.dimension, rows) != "in step":
            raise ShardError(partition, f"{place} does not hold what was written; look at the disk")
        return Rebuilt(partition, model.name, model.dimension, len(rows), place.stat().st_size, was)
    finally:
        catalog.close()


def _found(catalog: Catalog, place: Path, dimension: int, rows: Seqs) -> str:
    if not place.exists():
        return "missing"
    index = VectorIndex.load(place, dimension)
    if index is None:
        return "damaged"
    return "in step" if catalog.fits(stamp_of(place)) and np.array_equal(index.seqs(), rows) else "stale"
