"""The statements of a user's memories as arrays, and which of the memories a newer one updates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from tables.search.statements import VALUE_BITS, VALUE_WIDTH

Numbers = npt.NDArray[np.int64]


def key_of(word: int) -> int:
    """Return the part of a statement's word that tells what it is about."""
    return word >> VALUE_WIDTH


def value_of(word: int) -> int:
    """Return the part of a statement's word that tells its value."""
    return word & VALUE_BITS


def about_the_same(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
    """Return for each statement whether another one has the same key: bool[k]."""
    _, which, counts = np.unique(_keys(words), return_inverse=True, return_counts=True)
    same: npt.NDArray[np.bool_] = counts[which] > 1
    return same


def _keys(words: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    return words >> np.uint64(VALUE_WIDTH)


class Updates(NamedTuple):
    """Rows of memories that are outdated, and for each the row of the memory that updates it: int64[k], int64[k]."""

    older: Numbers
    newer: Numbers


@dataclass(frozen=True, slots=True)
class Stated:
    """Statements: their row among the user's memories, their `Statement.word`, and when they were said (epoch ms).

    The arrays have k elements each: int64, uint64, int64.
    """

    rows: Numbers
    words: npt.NDArray[np.uint64]
    said_at: Numbers

    @classmethod
    def of(cls, words: Sequence[Sequence[int]], said_at: Sequence[int]) -> Self:
        """Build the arrays from the words of each memory, and the times at which the memories were said."""
        return cls(
            np.array([row for row, several in enumerate(words) for _ in several], np.int64),
            np.array([word for several in words for word in several], np.uint64),
            np.array([at for at, several in zip(said_at, words, strict=True) for _ in several], np.int64),
        )

    def __len__(self) -> int:
        return len(self.rows)

    def by(self, moment: int, created_at: Numbers) -> Stated:
        """Return the statements as they were known at a moment (epoch ms).

        One that was said again later counts as said when its memory was created: see `created_at`, int64[n].
        """
        said_at = np.where(self.said_at > moment, created_at[self.rows], self.said_at)
        return Stated(self.rows, self.words, said_at)

    def about(self, words: Sequence[int]) -> Numbers:
        """Return the rows of the memories with a statement about the same as one of these words, ascending."""
        keys = np.array([key_of(word) for word in words], np.uint64)
        return np.unique(self.rows[np.isin(_keys(self.words), keys)])

    def followed_by(self, other: Stated, rows: int) -> Stated:
        """Return these statements of `rows` memories, and those of `other`, whose memories come after them."""
        return Stated(
            np.concatenate([self.rows, other.rows + rows]),
            np.concatenate([self.words, other.words]),
            np.concatenate([self.said_at, other.said_at]),
        )

    def updates(self, allowed: npt.NDArray[np.bool_]) -> Updates:
        """Return the memories whose statement is not the newest about the same, and gives another value than that.

        Only the rows in `allowed`, bool[n], are compared.

        A memory is at most once among the older ones: with the newest of the memories that update it.
        """
        counted = allowed[self.rows]
        rows, words, said_at = self.rows[counted], self.words[counted], self.said_at[counted]
        keys, values = _keys(words), words & np.uint64(VALUE_BITS)
        order = np.lexsort((rows, said_at, keys))
        ordered = keys[order]
        last = np.searchsorted(ordered, ordered, side="right") - 1
        newest = np.empty(len(order), np.int64)
        newest[order] = order[last]
        outdated = np.flatnonzero((values != values[newest]) & (rows != rows[newest]))
        by_age = outdated[np.argsort(said_at[newest[outdated]], kind="stable")][::-1]
        older, first = np.unique(rows[by_age], return_index=True)
        return Updates(older, rows[newest[by_age[first]]])
