"""Next checks: the earliest time at which each memory's state can change. An earlier recompute skips the memory."""

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
        """The bytes of memory that this object takes."""
        return self._runs.nbytes + self._moments.nbytes

    @property
    def newest(self) -> int:
        """The highest memory number (`seq`); -1 if no memory was added."""
        return self._runs.highest

    def add(self, seqs: Seqs) -> None:
        """Add the numbers of new memories, ascending and higher than all numbers so far.

        The next recompute will check these memories.
        """
        if len(seqs):
            self._runs.add(seqs)
            self._moments = np.concatenate([self._moments, np.zeros(len(seqs))])

    def at(self, now: int) -> Seqs:
        """Return the numbers of the memories to check at `now` (epoch ms), ascending."""
        return self._runs.numbers(np.flatnonzero(self._moments <= now))

    def set(self, seqs: Seqs, moments: Moments | float) -> None:
        """Set the times (epoch ms) of the next checks of the memories with these numbers.

        Unknown numbers are skipped. When `add` adds them, their first check is in the next recompute anyway.
        """
        places, known = self._runs.looked_up(seqs)
        self._moments[places[known]] = np.broadcast_to(moments, seqs.shape)[known]
