"""A list of ascending numbers, stored as runs of consecutive numbers. A run takes 24 bytes of memory.

The list returns the place of a number, that is, its index, and the number at a place. Each new memory gets the next
number, and no number is used twice, so most numbers are consecutive. If a random tenth of the memories was removed,
the list takes about two bytes for each number.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]
Places = npt.NDArray[np.int64]

#: This value is added to a number below the first run. The sum is far above all places, so the number counts as
#: missing.
_NOWHERE: Final = np.array([1 << 62], np.int64)


class Runs:
    """A list of ascending numbers. The place of a number is its index, so the first number has the place 0.

    runs = Runs(np.array([5, 6, 9]))
    runs.places(np.array([6, 7, 9]))    # [1, 2]: missing numbers are left out
    """

    def __init__(self, numbers: Numbers | None = None) -> None:
        self._firsts: Numbers = np.empty(0, np.int64)
        #: The place of the first number of each run. The last entry is the next free place.
        self._starts: Places = np.zeros(1, np.int64)
        #: The value that gives the place of a number when it is added to the number. Entry n is for numbers of the
        #: n-th run, counted from 1. Entry 0 is `_NOWHERE`, for numbers below the first run.
        self._behind: Places = _NOWHERE
        if numbers is not None:
            self.add(numbers)

    def __len__(self) -> int:
        return int(self._starts[-1])

    @property
    def nbytes(self) -> int:
        """The size of the list in memory, in bytes."""
        return self._firsts.nbytes + self._starts.nbytes + self._behind.nbytes

    @property
    def highest(self) -> int:
        """The highest number in the list; -1 if the list is empty."""
        return int(self._firsts[-1] + self._starts[-1] - self._starts[-2] - 1) if len(self._firsts) else -1

    def add(self, numbers: Numbers) -> None:
        """Add ascending numbers, int64[n], which must be higher than all numbers in the list."""
        if not len(numbers):
            return
        begins = np.flatnonzero(np.diff(numbers, prepend=self.highest if len(self._firsts) else numbers[0] - 2) != 1)
        self._firsts = np.concatenate([self._firsts, numbers[begins]])
        self._starts = np.concatenate([self._starts[:-1], len(self) + np.append(begins, len(numbers))])
        self._behind = np.concatenate([_NOWHERE, self._starts[:-1] - self._firsts])

    def below(self, number: int) -> int:
        """Return how many numbers in the list are lower than this one."""
        run = int(self._firsts.searchsorted(number, side="right")) - 1
        if run < 0:
            return 0
        return int(min(self._starts[run] + number - self._firsts[run], self._starts[run + 1]))

    def places(self, numbers: Numbers) -> Places:
        """Return the places of these numbers, in the same order. Numbers that are not in the list are left out."""
        runs = self._firsts.searchsorted(numbers, side="right")
        places = self._behind[runs] + numbers
        found: Places = places[places < self._starts[runs]]
        return found

    def looked_up(self, numbers: Numbers) -> tuple[Places, npt.NDArray[np.bool_]]:
        """Return the place of each number, and whether the list has the number.

        The place of a number that is not in the list has no meaning.
        """
        runs = self._firsts.searchsorted(numbers, side="right")
        places = self._behind[runs] + numbers
        return places, places < self._starts[runs]

    def numbers(self, places: Places) -> Numbers:
        """Return the numbers at these places."""
        runs = np.searchsorted(self._starts, places, side="right") - 1
        found: Numbers = self._firsts[runs] + (places - self._starts[runs])
        return found
