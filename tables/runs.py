"""Ascending numbers and the place of each, held as runs of consecutive numbers, 24 bytes a run.

Numbers of memories are given in sequence, and once, so most are consecutive. If a tenth of them is gone, at random,
they take a byte or two each.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]
Places = npt.NDArray[np.int64]

#: Far above all places, even after a number is added.
_NOWHERE: Final = np.array([1 << 62], np.int64)


class Runs:
    """Ascending numbers; their places are counted from 0.

    runs = Runs(np.array([5, 6, 9]))
    runs.places(np.array([6, 7, 9]))    # [1, 2]: missing numbers are left out
    """

    def __init__(self, numbers: Numbers | None = None) -> None:
        self._firsts: Numbers = np.empty(0, np.int64)
        #: The place of each run's first number, and then the next free place.
        self._starts: Places = np.zeros(1, np.int64)
        #: Added to a number for its place, indexed by how many runs begin at or before it; for none, the end of all
        #: places.
        self._behind: Places = _NOWHERE
        if numbers is not None:
            self.add(numbers)

    def __len__(self) -> int:
        return int(self._starts[-1])

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        return self._firsts.nbytes + self._starts.nbytes + self._behind.nbytes

    @property
    def highest(self) -> int:
        """The highest number; -1 if there is none."""
        return int(self._firsts[-1] + self._starts[-1] - self._starts[-2] - 1) if len(self._firsts) else -1

    def add(self, numbers: Numbers) -> None:
        """Add numbers above all others, int64[n], ascending."""
        if not len(numbers):
            return
        begins = np.flatnonzero(np.diff(numbers, prepend=self.highest if len(self._firsts) else numbers[0] - 2) != 1)
        self._firsts = np.concatenate([self._firsts, numbers[begins]])
        self._starts = np.concatenate([self._starts[:-1], len(self) + np.append(begins, len(numbers))])
        self._behind = np.concatenate([_NOWHERE, self._starts[:-1] - self._firsts])

    def places(self, numbers: Numbers) -> Places:
        """Return the places of these numbers, in their order; missing ones are left out."""
        runs = self._firsts.searchsorted(numbers, side="right")
        places = self._behind[runs] + numbers
        found: Places = places[places < self._starts[runs]]
        return found

    def looked_up(self, numbers: Numbers) -> tuple[Places, npt.NDArray[np.bool_]]:
        """Return the place of each number, valid only if it is there, and whether it is."""
        runs = self._firsts.searchsorted(numbers, side="right")
        places = self._behind[runs] + numbers
        return places, places < self._starts[runs]

    def numbers(self, places: Places) -> Numbers:
        """Return the numbers at these places."""
        runs = np.searchsorted(self._starts, places, side="right") - 1
        found: Numbers = self._firsts[runs] + (places - self._starts[runs])
        return found
