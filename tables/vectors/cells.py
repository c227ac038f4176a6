"""Vectors in cells: a FAISS inverted file whose cells are chosen by user, and are not learned clusters.

All vectors of a user are in one cell. A query reads this whole cell and no other, so its result is exact, and its
cost depends only on the number of vectors in the cell.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from tables.vectors.index import Seqs, Vectors, below

# faiss-cpu annotates its C++ side only in part: the constructors and pointers used here are not in its stubs.
faiss: Any = importlib.import_module("faiss")

#: The number of lists of a new index in memory.
_FEWEST_LISTS = 1_024


class Cells:
    """Vectors of one dimension in cells, by memory number (`seq`). All are unit vectors: inner products are cosines.

    The FAISS index has lists only for cells that have vectors, because 65,536 lists would take ten megabytes of
    memory. Subclasses map a cell to its list.
    """

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self._index: Any = None

    def __len__(self) -> int:
        raise NotImplementedError

    def seqs(self) -> Seqs:
        """Return the memory numbers of all vectors, ascending."""
        raise NotImplementedError

    def list_of(self, cell: int) -> int:
        """Return the place of a cell's list in the FAISS index; -1 if the cell has no list."""
        raise NotImplementedError

    def lists_of(self, cells: Seqs) -> Seqs:
        """Return the result of `list_of` for each cell, int64[n]."""
        raise NotImplementedError

    def similarities(self, cell: int, query: Vectors, seqs: Seqs) -> Vectors:
        """Return the cosine of `query`, float32[d], with each vector of `seqs`, in the order of `seqs`.

        The cosine is 0 for a missing vector.
        """
        found = np.zeros(len(seqs), np.float32)
        if not len(seqs) or (place := self.list_of(cell)) < 0:
            return found
        seqs = np.ascontiguousarray(seqs, np.int64)
        selector = faiss.IDSelectorBatch(seqs)
        parameters = faiss.IVFSearchParameters(sel=selector, nprobe=1)
        distances = np.empty((1, len(seqs)), np.float32)
        labels = np.empty((1, len(seqs)), np.int64)
        lists, coarse = np.array([[place]], np.int64), np.zeros((1, 1), np.float32)
        query = np.ascontiguousarray(query, np.float32).reshape(1, -1)
        self._index.search_preassigned_c(
            1,
            faiss.swig_ptr(query),
            len(seqs),
            faiss.swig_ptr(lists),
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

    def near(self, cells: Seqs, queries: Vectors, cosine: float) -> dict[int, list[int]]:
        """For each row of `queries`, float32[n, d], return the numbers of near vectors in the row's cell, ascending.

        A vector is near if its cosine with the row is at least `cosine`; it may be of any user. A row without near
        vectors has no entry. One FAISS call serves all rows: for a batch with a thousand users, one matrix product
        for each user would take four times as long, and most of this time would be overhead.
        """
        lists = self.lists_of(cells)
        if lists.max(initial=-1) < 0:
            return {}
        queries = np.ascontiguousarray(queries, np.float32)
        ends, _, seqs = self._index.range_search_preassigned(queries, below(cosine), lists.reshape(-1, 1), None)
        found = {
            int(row): np.sort(seqs[int(ends[row]) : int(ends[row + 1])])
            for row in np.flatnonzero(np.diff(ends.astype(np.int64)))
        }
        named = {row: some[some >= 0].tolist() for row, some in found.items()}
        return {row: some for row, some in named.items() if some}


def empty_lists(dimension: int, lists: int) -> Any:
    """Return a FAISS index with this number of empty lists. The caller chooses the list of each added vector."""
    quantizer = faiss.IndexFlatIP(dimension)
    index = faiss.IndexIVFFlat(quantizer, dimension, lists, faiss.METRIC_INNER_PRODUCT)
    index.own_fields = True
    quantizer.this.disown()
    index.is_trained = True  # training would find cluster centres; our lists have none, because callers choose them
    return index


class NewCells(Cells):
    """An index in memory, for new vectors that are not yet in a segment."""

    def __init__(self, dimension: int) -> None:
        super().__init__(dimension)
        self._lists: dict[int, int] = {}
        self._index = empty_lists(dimension, _FEWEST_LISTS)

    def __len__(self) -> int:
        return int(self._index.ntotal)

    def list_of(self, cell: int) -> int:
        return self._lists[cell] if cell in self._lists else -1  # noqa: SIM401 - a call

    def lists_of(self, cells: Seqs) -> Seqs:
        held = self._lists
        return np.array([held[cell] if cell in held else -1 for cell in cells.tolist()], np.int64)  # noqa: SIM401 - a call

    def add(self, seqs: Seqs, cells: Seqs, vectors: Vectors) -> None:
        """Add vectors, float32[n, d]. Raises ValueError if the dimension differs."""
        if vectors.shape != (len(seqs), self.dimension):
            raise ValueError(f"vectors of shape {vectors.shape} do not fit dimension {self.dimension}")
        if not len(seqs):
            return
        held, wanted = self._lists, cells.tolist()
        for cell in wanted:
            if cell not in held:
                held[cell] = len(held)
        lists = np.array([held[cell] for cell in wanted], np.int64)
        if len(held) > self._index.nlist:
            self._make_room()
        seqs, vectors = np.ascontiguousarray(seqs, np.int64), np.ascontiguousarray(vectors, np.float32)
        self._index.add_core(len(seqs), faiss.swig_ptr(vectors), faiss.swig_ptr(seqs), faiss.swig_ptr(lists))

    def _make_room(self) -> None:
        """Copy the vectors to a FAISS index with at least four times as many lists."""
        old, lists = self._index, self._index.nlist
        while lists < len(self._lists):
            lists *= 4
        self._index = empty_lists(self.dimension, lists)
        fresh, held = self._index.invlists, old.invlists
        for place in range(old.nlist):
            if size := held.list_size(place):
                fresh.add_entries(place, size, held.get_ids(place), held.get_codes(place))
        self._index.ntotal = old.ntotal

    def remove(self, seqs: Seqs) -> int:
        """Remove the vectors with these numbers. Return the number of removed vectors."""
        return int(self._index.remove_ids(np.ascontiguousarray(seqs, np.int64))) if len(seqs) and len(self) else 0

    def lists(self) -> list[tuple[int, Seqs, Vectors]]:
        """Return (cell, numbers, vectors) of each cell with vectors, by ascending cell.

        The arrays are valid until the index changes.
        """
        lists, found = self._index.invlists, []
        for cell, place in sorted(self._lists.items()):
            if size := lists.list_size(place):
                codes = faiss.rev_swig_ptr(lists.get_codes(place), size * 4 * self.dimension)
                vectors = codes.view(np.float32).reshape(size, -1)
                found.append((cell, faiss.rev_swig_ptr(lists.get_ids(place), size), vectors))
        return found

    def seqs(self) -> Seqs:
        held = [seqs for _, seqs, _ in self.lists()]
        return np.sort(np.concatenate(held)) if held else np.empty(0, np.int64)
