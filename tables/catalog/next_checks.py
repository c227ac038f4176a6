"""When each memory's state can change next: until then a recompute need not look at it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from tables.vectors.index import Seqs

Moments = npt.NDArray[np.float64]
NEVER = np.inf


def _no_seqs() -> Seqs:
    return np.empty(0, np.int64)


def _no_moments() -> Moments:
    return np.empty(0, np.float64)


@dataclass(slots=True)
class NextChecks:
    """Memories by number, ascending, and the moment (epoch ms) at which each is to be looked at.

    Sixteen bytes a memory. A number that is gone stays, due never, until the shard is opened again.
    """

    seqs: Seqs = field(default_factory=_no_seqs)
    moments: Moments = field(default_factory=_no_moments)

    @property
    def newest(self) -> int:
        """The highest number; -1 where there is none."""
        return int(self.seqs[-1]) if len(self.seqs) else -1

    def add(self, seqs: Seqs) -> None:
        """Numbers above all others, ascending: due at once."""
        if len(seqs):
            self.seqs = np.concatenate([self.seqs, seqs])
            self.moments = np.concatenate([self.moments, np.zeros(len(seqs))])

    def at(self, now: int) -> Seqs:
        """Those that are due, ascending."""
        return self.seqs[self.moments <= now]

    def set(self, seqs: Seqs, moments: Moments | float) -> None:
        """When these are due. Numbers that it does not have are passed over: they will be added, due at once."""
        places = np.searchsorted(self.seqs, seqs)
        known = places < len(self.seqs)
        known[known] = self.seqs[places[known]] == seqs[known]
        self.moments[places[known]] = np.broadcast_to(moments, seqs.shape)[known]
