"""A sealed segment of a shard's vectors: a mapped file, of which only the parts that are read are in memory.

    segment = Segment.opened(path, 384)      # None if the file is incomplete
    segment.similarities(cell, query, seqs)
    segment.wipe(seqs)                       # overwrites the file at once

A row changes only when it is removed: its vector becomes zeros and its number becomes -1, which no memory has.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tables.vectors.cells import Cells, faiss
from tables.vectors.index import Seqs
from tables.vectors.manifest import Named
from tables.vectors.segment_file import Layout, read_layout


class Segment(Cells):
    """One sealed segment of a shard, opened from its file."""

    def __init__(self, path: Path, layout: Layout, index: Any) -> None:
        super().__init__(layout.dimension)
        self.path, self.layout = path, layout
        self._index = index
        self._cells = layout.cells
        self._seqs = np.memmap(path, "<i8", "r", layout.seqs_at, (layout.rows,))
        self._places = np.memmap(path, "<i4", "r", layout.places_at, (layout.rows,))
        with path.open("rb") as file:
            file.seek(layout.gone_at)
            self._bits = np.frombuffer(bytearray(file.read((layout.rows + 7) // 8)), np.uint8)
        #: The removed rows of the file, ascending.
        self._gone = np.empty(0, np.int64)
        if self._bits.any():
            self._gone = np.sort(self._places[self._is_gone()].astype(np.int64))

    @classmethod
    def opened(cls, path: Path, dimension: int) -> Segment | None:
        """Open a segment. Return None if its file is missing, incomplete, damaged or of another dimension."""
        try:
            layout = read_layout(path)
            if layout is None or layout.dimension != dimension or not layout.rows:
                return None
            index = faiss.read_index(str(path), faiss.IO_FLAG_MMAP)
            segment = cls(path, layout, index)
        except (OSError, RuntimeError):
            return None
        if (index.d, index.ntotal, index.nlist) != (dimension, layout.rows, len(layout.cells)):
            return None
        return segment

    def __len__(self) -> int:
        return self.layout.rows - len(self._gone)

    @property
    def gone(self) -> int:
        """The number of removed rows."""
        return len(self._gone)

    @property
    def named(self) -> Named:
        """The segment as a manifest names it."""
        return Named(self.layout.number, self.layout.rows, self.layout.bytes, self.gone)

    def list_of(self, cell: int) -> int:
        place = int(self._cells.searchsorted(cell))
        return place if place < len(self._cells) and self._cells[place] == cell else -1

    def lists_of(self, cells: Seqs) -> Seqs:
        places = np.minimum(np.searchsorted(self._cells, cells), len(self._cells) - 1)
        return np.where(self._cells[places] == cells, places, -1)

    def seqs(self) -> Seqs:
        held = np.asarray(self._seqs, np.int64)
        return held[~self._is_gone()] if len(self._gone) else held

    def _is_gone(self) -> npt.NDArray[np.bool_]:
        """Return whether each row is removed, bool[n], in the order of `_seqs`."""
        return np.unpackbits(self._bits, count=self.layout.rows, bitorder="little").astype(np.bool_)

    def wipe(self, seqs: Seqs) -> int:
        """Overwrite the vectors with these numbers in the file. Return the number of vectors that were overwritten.

        If it raises OSError, the vectors are removed in memory, but the file may still have some of them.
        """
        if not len(seqs):
            return 0
        at = np.minimum(np.searchsorted(self._seqs, seqs), self.layout.rows - 1)
        hits = at[(self._seqs[at] == seqs) & (seqs >= 0)]
        hits = np.unique(hits[(self._bits[hits // 8] >> (hits % 8).astype(np.uint8)) & 1 == 0])
        if not len(hits):
            return 0
        rows = self._places[hits].astype(np.int64)
        for hit in hits.tolist():
            self._bits[hit // 8] |= np.uint8(1 << hit % 8)
        self._gone = np.sort(np.concatenate([self._gone, rows]))
        self._wipe_rows(rows)
        with self.path.open("r+b", buffering=0) as file:
            for byte in np.unique(hits // 8).tolist():  # written last: a set bit means that the row is overwritten
                os.pwrite(file.fileno(), self._bits[byte].tobytes(), self.layout.gone_at + byte)
        return len(hits)

    def wipe_again(self) -> None:
        """Overwrite every removed row again, because an earlier overwrite may not be on the disk. Raises OSError."""
        self._wipe_rows(self._gone)

    def sync(self) -> None:
        """Overwrite all removed rows again, and sync the file to the disk. Raises OSError."""
        self._wipe_rows(self._gone)
        with self.path.open("r+b", buffering=0) as file:
            os.pwrite(file.fileno(), self._bits.tobytes(), self.layout.gone_at)
            os.fsync(file.fileno())

    def _wipe_rows(self, rows: Seqs) -> None:
        layout, zeros = self.layout, bytes(4 * self.dimension)
        lists = np.searchsorted(layout.starts, rows, "right") - 1
        with self.path.open("r+b", buffering=0) as file:
            for place, row in zip(lists.tolist(), rows.tolist(), strict=True):
                os.pwrite(file.fileno(), zeros, layout.vector_at(place, row))
                os.pwrite(file.fileno(), b"\xff" * 8, layout.number_at(place, row))


class SegmentRows:
    """The rows of a segment as a source of a new segment. Rows that are already removed are left out.

    A row that is removed after this object was made is copied as a removed row.
    """

    def __init__(self, segment: Segment) -> None:
        layout = segment.layout
        self._layout, self._gone, self.cells = layout, segment._gone, layout.cells
        gone = np.diff(np.searchsorted(self._gone, layout.starts))
        self.sizes: Seqs = np.diff(layout.starts) - gone
        with segment.path.open("rb") as file:
            self._bytes = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))

    def pieces(self, place: int) -> tuple[list[Any], list[Any]]:
        layout = self._layout
        start, end = int(layout.starts[place]), int(layout.starts[place + 1])
        first, last = np.searchsorted(self._gone, [start, end]) if len(self._gone) else (0, 0)
        gone = self._gone[first:last].tolist()
        runs = [
            (before, after)
            for before, after in zip([start, *(row + 1 for row in gone)], [*gone, end], strict=True)
            if before < after
        ]
        vectors, numbers = layout.vector_at(place, start), layout.number_at(place, start)
        width = 4 * layout.dimension
        return (
            [self._bytes[vectors + (a - start) * width : vectors + (b - start) * width] for a, b in runs],
            [self._bytes[numbers + (a - start) * 8 : numbers + (b - start) * 8] for a, b in runs],
        )
