"""Next checks: the earliest time at which each memory's state can change. Until then, a recompute skips it."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from tables.runs import Runs
from tables.vectors.index import Seqs

Moments = npt.NDArray[np.float64]
NEVER: Final = np.inf


class NextChecks:
    """The time (epoch ms) of each memory's next check, by the memory's number. It takes eight bytes for each memory.

    The number of a deleted memory stays until the shard is opened again, with the time `NEVER`.
    """

    def __init__(self) -> None:
        self._runs, self._moments = Runs(), np.empty(0, np.float64)

    @property
    def nbytes(self) -> int:
        """The size in memory, in bytes."""
        return self._runs.nbytes + self._moments.nbytes

    @property
    def newest(self) -> int:
        """The highest number; -1 if there is none."""
        return self._runs.highest

    def add(self, seqs: Seqs) -> None:
        """Add numbers, which ascend and are above all others. They are due at once."""
        if len(seqs):
            self._runs.add(seqs)
            self._moments = np.concatenate([self._moments, np.zeros(len(seqs))])

    def at(self, now: int) -> Seqs:
        """Return the numbers that are due at `now`, ascending."""
        return self._runs.numbers(np.flatnonzero(self._moments <= now))

    def set(self, seqs: Seqs, moments: Moments | float) -> None:
        """Set the times at which these numbers are due. Unknown numbers are skipped; `add` makes them due at once."""
        places, known = self._runs.looked_up(seqs)
        self._moments[places[known]] = np.broadcast_to(moments, seqs.shape)[known]
