"""The smallest vector index: a dictionary in memory, for tests, and as an example of another index."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from tables.vectors.index import ReadVectors, Seqs, Vectors, below
from tables.vectors.manifest import Stamp


class WithoutFiles:
    """What an index without files does about files: at each opening, it is filled from the catalog's vectors."""

    def load(self, fits: Callable[[Stamp], bool], stamp: Callable[[Stamp | None], Stamp], changes: int) -> bool:
        return False

    def note(self, changes: int | None) -> None:
        pass

    def tidy(self) -> None:
        pass

    def flush(self) -> None:
        pass

    def erase(self) -> None:
        pass

    def publish(self, stamp: Callable[[Stamp | None], Stamp]) -> None:
        pass


class ToyIndex(WithoutFiles):
    """An index in a dictionary."""

    def __init__(self, folder: Path, dimension: int, name: str) -> None:
        self.dimension = dimension
        self._held: dict[int, tuple[int, Vectors]] = {}

    def __len__(self) -> int:
        return len(self._held)

    def seqs(self) -> Seqs:
        return np.array(sorted(self._held), np.int64)

    def similarities(self, cell: int, query: Vectors, seqs: Seqs) -> Vectors:
        held = [self._held.get(seq) for seq in seqs.tolist()]
        return np.array([one[1] @ query if one is not None and one[0] == cell else 0 for one in held], np.float32)

    def near(self, cells: Seqs, queries: Vectors, cosine: float) -> dict[int, list[int]]:
        found = {
            row: [seq for seq in sorted(self._held) if self._held[seq][0] == cell and self._near(seq, query, cosine)]
            for row, (cell, query) in enumerate(zip(cells.tolist(), queries, strict=True))
        }
        return {row: seqs for row, seqs in found.items() if seqs}

    def _near(self, seq: int, query: Vectors, cosine: float) -> bool:
        return float(self._held[seq][1] @ query) > below(cosine)

    def add(self, seqs: Seqs, cells: Seqs, vectors: Vectors) -> None:
        if vectors.shape != (len(seqs), self.dimension):
            raise ValueError(f"vectors of shape {vectors.shape} do not fit dimension {self.dimension}")
        for seq, cell, vector in zip(seqs.tolist(), cells.tolist(), vectors, strict=True):
            self._held[seq] = cell, np.array(vector, np.float32)

    def remove(self, seqs: Seqs) -> None:
        for seq in seqs.tolist():
            self._held.pop(seq, None)

    def fill(self, seqs: Seqs, cells: Seqs, read: ReadVectors, tell: Callable[[int], None]) -> None:
        self.add(seqs, cells, read(np.arange(len(seqs))))
        tell(len(seqs))

    @property
    def bytes(self) -> int:
        return 4 * self.dimension * len(self._held)

    def verify(self, seqs: Seqs) -> bool:
        return np.array_equal(seqs, self.seqs())

    def close(self, changes: int | None) -> None:
        self._held.clear()

    def discard(self) -> None:
        self._held.clear()
