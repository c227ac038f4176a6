"""Numbers in ascending order, and the place of each: held as runs of consecutive ones, 24 bytes a run.

Numbers of memories are given one after the other, and once. So most follow each other, and where a tenth of them is
gone, in no order, they take a byte or two each.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]
Places = npt.NDArray[np.int64]

#: Far above all places, also with any number added to it.
_NOWHERE: Final = np.array([1 << 62], np.int64)


class Runs:
    """Places are counted from 0.

    runs = Runs(np.array([5, 6, 9]))
    runs.places(np.array([6, 7, 9]))    # [1, 2]: those that it does not have are left out
    """

    def __init__(self, numbers: Numbers | None = None) -> None:
        self._firsts: Numbers = np.empty(0, np.int64)
        #: The place of each of these, and behind them the next one's that is free.
        self._starts: Places = np.zeros(1, np.int64)
        #: By how many runs begin at or before a number: what is added to it for its place. Of no run, the end of all.
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
        """-1 where there is none."""
        return int(self._firsts[-1] + self._starts[-1] - self._starts[-2] - 1) if len(self._firsts) else -1

    def add(self, numbers: Numbers) -> None:
        """Numbers above all others, int64[n], ascending."""
        if not len(numbers):
            return
        begins = np.flatnonzero(np.diff(numbers, prepend=self.highest if len(self._firsts) else numbers[0] - 2) != 1)
        self._firsts = np.concatenate([self._firsts, numbers[begins]])
        self._starts = np.concatenate([self._starts[:-1], len(self) + np.append(begins, len(numbers))])
        self._behind = np.concatenate([_NOWHERE, self._starts[:-1] - self._firsts])

    def places(self, numbers: Numbers) -> Places:
        """Where these numbers are, in their order; those that it does not have are left out."""
        runs = self._firsts.searchsorted(numbers, side="right")
        places = self._behind[runs] + numbers
        found: Places = places[places < self._starts[runs]]
        return found

    def looked_up(self, numbers: Numbers) -> tuple[Places, npt.NDArray[np.bool_]]:
        """Where each of these numbers is, if it is there, and whether it is."""
        runs = self._firsts.searchsorted(numbers, side="right")
        places = self._behind[runs] + numbers
        return places, places < self._starts[runs]

    def numbers(self, places: Places) -> Numbers:
        """Which numbers are at these places."""
        runs = np.searchsorted(self._starts, places, side="right") - 1
        found: Numbers = self._firsts[runs] + (places - self._starts[runs])
        return found
