"""A second vector index: plain products over a mapped file of vectors, `vectors[slots] @ query`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tables.vectors.index import ReadVectors, Seqs, Vectors, below
from tables.vectors.toy import WithoutFiles

Numbers = npt.NDArray[np.int64]


class ProductIndex(WithoutFiles):
    """An index that holds 20 bytes for each vector: number, slot and cell. `vectors` is the file, float32[slots, d].

    `slots_of` returns the slots of numbers that are added, in any order, with their numbers.
    """

    def __init__(self, vectors: Callable[[], Vectors], slots_of: Callable[[Seqs], tuple[Seqs, Numbers]]) -> None:
        self._vectors, self._slots_of = vectors, slots_of
        self.dimension = vectors().shape[1]
        self._seqs, self._slots = np.empty(0, np.int64), np.empty(0, np.int64)
        self._cells = np.empty(0, np.int32)

    def __len__(self) -> int:
        return len(self._seqs)

    def seqs(self) -> Seqs:
        return self._seqs.copy()

    def similarities(self, cell: int, query: Vectors, seqs: Seqs) -> Vectors:
        found = np.zeros(len(seqs), np.float32)
        if not len(self._seqs):
            return found
        places = np.minimum(np.searchsorted(self._seqs, seqs), len(self._seqs) - 1)
        here = (self._seqs[places] == seqs) & (self._cells[places] == cell)
        found[here] = self._vectors()[self._slots[places[here]]] @ query
        return found

    def near(self, cells: Seqs, queries: Vectors, cosine: float) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for cell in np.unique(cells):
            held = np.flatnonzero(self._cells == cell)
            rows = np.flatnonzero(cells == cell)
            near = queries[rows] @ self._vectors()[self._slots[held]].T > below(cosine)
            found |= {
                int(row): self._seqs[held[hit]].tolist() for row, hit in zip(rows, near, strict=True) if hit.any()
            }
        return found

    def add(self, seqs: Seqs, cells: Seqs, vectors: Vectors) -> None:
        if vectors.shape != (len(seqs), self.dimension):
            raise ValueError(f"vectors of shape {vectors.shape} do not fit dimension {self.dimension}")
        self._take(seqs, cells)

    def _take(self, seqs: Seqs, cells: Seqs) -> None:
        named, slots = self._slots_of(seqs)
        order, by_number = np.argsort(seqs), np.argsort(named)
        all_seqs = np.concatenate([self._seqs, seqs[order]])
        sort = np.argsort(all_seqs, kind="stable")
        self._seqs = all_seqs[sort]
        self._slots = np.concatenate([self._slots, slots[by_number]])[sort]
        self._cells = np.concatenate([self._cells, cells[order].astype(np.int32)])[sort]

    def remove(self, seqs: Seqs) -> None:
        kept = ~np.isin(self._seqs, seqs)
        self._seqs, self._slots, self._cells = self._seqs[kept], self._slots[kept], self._cells[kept]

    def fill(self, seqs: Seqs, cells: Seqs, read: ReadVectors, tell: Callable[[int], None]) -> None:
        self._take(seqs, cells)
        tell(len(seqs))

    def verify(self, seqs: Seqs) -> bool:
        return np.array_equal(seqs, self._seqs)

    @property
    def bytes(self) -> int:
        return self._seqs.nbytes + self._slots.nbytes + self._cells.nbytes

    def close(self, changes: int | None) -> None:
        self.remove(self._seqs)

    def discard(self) -> None:
        self.remove(self._seqs)


class FiledProducts(ProductIndex):
    """Products over a file of its own, which has the vectors in the order in which they were added."""

    def __init__(self, folder: Path, dimension: int, name: str) -> None:
        self._path = folder / "products.f32"
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_bytes(b"")
        self._in_file: list[int] = []
        self._width = dimension
        super().__init__(self._mapped, self._places)

    def _mapped(self) -> Vectors:
        if not self._in_file:
            return np.empty((0, self._width), np.float32)
        return np.memmap(self._path, "<f4", "r", shape=(len(self._in_file), self._width)).view(np.ndarray)

    def _places(self, seqs: Seqs) -> tuple[Seqs, Numbers]:
        first = len(self._in_file) - len(seqs)
        return seqs, np.arange(first, first + len(seqs))

    def add(self, seqs: Seqs, cells: Seqs, vectors: Vectors) -> None:
        if vectors.shape == (len(seqs), self.dimension):
            with self._path.open("ab") as file:
                file.write(np.ascontiguousarray(vectors, "<f4").tobytes())
            self._in_file += seqs.tolist()
        super().add(seqs, cells, vectors)

    def fill(self, seqs: Seqs, cells: Seqs, read: ReadVectors, tell: Callable[[int], None]) -> None:
        self.add(seqs, cells, read(np.arange(len(seqs))))
        tell(len(seqs))
