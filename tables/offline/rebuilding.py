"""Rebuilds the FAISS segments of a shard that no process has open, from its stored vectors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from schemas.errors import ShardError
from tables.memories.catalog.catalog import Catalog
from tables.memories.mending import mend
from tables.vectors import manifest
from tables.vectors.index import Seqs
from tables.vectors.manifest import read_manifest
from tables.vectors.segment import Segment
from tables.vectors.segmented import SegmentedIndex


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """A rebuilt index. `was` is the state of its old segments: `missing`, `damaged`, `stale` or `in step`."""

    partition: int
    model: str
    dimension: int
    rows: int
    bytes: int
    was: str


def rebuild_index(partition: int, path: Path, tell: Callable[[int, int], None]) -> Rebuilt | None:
    """Rebuild the index beside the catalog at `path`. Return None if the shard has never had a vector.

    `tell` is called with the number of vectors that are done, and the number of all vectors. The old segments stay
    until the new ones are complete. Then the new segments are read, to check that they have exactly the catalog's
    numbers. Raises `ShardLocked`, `ShardError` and `DataDirError`.
    """
    folder = path.parent
    catalog = Catalog(path, partition)
    try:
        model = catalog.reembedding.model
        if model is None:
            return None
        rows = catalog.seqs()
        was = _found(catalog, folder, model.dimension, rows)
        index = SegmentedIndex(folder, model.dimension, f"shard {partition}")
        try:
            tell(0, len(rows))
            mend(index, catalog, tell)
            index.flush()
            index.merge_all()
            if index.unsealed:
                raise ShardError(partition, f"the segments in {folder} cannot be written; check the disk")
            index.publish(catalog.next_stamp)
        except BaseException:
            index.discard()
            raise
        index.note(catalog.changes)
        (folder / "vectors.faiss").unlink(missing_ok=True)  # a file of an older version
        if _found(catalog, folder, model.dimension, rows) != "in step":
            raise ShardError(partition, f"{folder} does not hold the segments that were written; check the disk")
        size = index.bytes
        return Rebuilt(partition, model.name, model.dimension, len(rows), size, was)
    finally:
        catalog.close()


def _found(catalog: Catalog, folder: Path, dimension: int, rows: Seqs) -> str:
    if not (folder / manifest.NAME).exists():
        return "missing"
    if (found := read_manifest(folder)) is None:
        return "damaged"
    opened = [Segment.opened(folder / manifest.FOLDER / named.name, dimension) for named in found.segments]
    segments = [segment for segment in opened if segment is not None]
    if len(segments) < len(opened):
        return "damaged"
    held = np.sort(np.concatenate([np.empty(0, np.int64), *(segment.seqs() for segment in segments)]))
    return "in step" if catalog.fits(found.stamp) and np.array_equal(held, rows) else "stale"
