"""The file with the terms of a shard's memories, one memory after the other. One pass reads all terms of a user."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from tables.search.appended import AppendedFile
from tables.search.row_file import Row, Rows
from tables.search.terms import Counted, Terms

#: The terms of a memory follow two words: the memory's number, and the sum of its terms as a checksum.
_HEAD: Final = 2
_ALL: Final = (1 << 64) - 1

Numbers = npt.NDArray[np.int64]


def bytes_of(rows: Rows) -> Numbers:
    """Return the size of each row's terms in the file, in bytes, int64[n]."""
    return 8 * (rows["terms"].astype(np.int64) + _HEAD)


class TermsFile(AppendedFile):
    def put(self, seqs: Numbers, several: Sequence[Counted]) -> Numbers:
        """Write the terms of memories and return the offset of each, int64[n]. Raises `OSError`."""
        words: list[int] = []
        for seq, one in zip(seqs.tolist(), several, strict=True):
            words += (seq, sum(one.words) & _ALL, *one.words)
        start = self.append(np.array(words, "<u8").tobytes())
        sizes = np.array([8 * (_HEAD + len(one.words)) for one in several], np.int64)
        return start + np.cumsum(sizes) - sizes

    def gathered(self, rows: Rows) -> tuple[Terms, npt.NDArray[np.bool_]]:
        """Return the terms of these rows, and a mask (bool[n]) of rows whose terms a power failure has destroyed."""
        sizes = rows["terms"].astype(np.int64) + _HEAD
        starts = np.cumsum(sizes) - sizes
        words = self.words[np.repeat(rows["terms_at"] // 8 - starts, sizes) + np.arange(int(sizes.sum()))]
        seqs, sums = words[starts], words[starts + 1]
        is_term = np.ones(len(words), np.bool_)
        is_term[starts] = is_term[starts + 1] = False
        words = words[is_term]
        upto = np.concatenate([np.zeros(1, np.uint64), np.cumsum(words, dtype=np.uint64)])
        ends = np.cumsum(sizes - _HEAD)
        lost = (seqs != rows["seq"].astype(np.uint64)) | (sums != upto[ends] - upto[ends - sizes + _HEAD])
        return Terms(words, sizes - _HEAD, rows["length"].copy()), lost

    def wipe(self, row: Row) -> None:
        """Overwrite the row's terms with zeros."""
        self.erase(row.terms_at, 8 * (row.terms + _HEAD))
