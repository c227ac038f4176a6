"""What ranking reads of all memories of a shard, as arrays in memory: importance, accesses, pins.

An access changes these values, so they have no file: the catalog has them, and one scan reads them at the opening.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from schemas.memories import Memory
from tables.runs import Places, Runs
from tables.vectors.index import Seqs

PINNED: Final = 1
CURRENT: Final = 2
GONE: Final = 4

#: Times are epoch ms. A row takes 21 bytes of memory.
ROW: Final = np.dtype([("importance", "<f8"), ("last_accessed", "<i8"), ("access_count", "<u4"), ("flags", "u1")])
_MORE: Final = 1024


class Standing:
    """A row for each memory, in the order of their numbers. A memory's place never changes.

    The row of a memory that leaves is `GONE`. `columns` are those of `Catalog.standing`.
    """

    def __init__(self, columns: Mapping[str, npt.NDArray[Any]]) -> None:
        seqs = columns["seq"]
        self._numbers = Runs(seqs)
        self._rows = np.zeros(len(seqs) + _MORE, ROW)
        self._set(np.arange(len(seqs)), columns)

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def rows(self) -> npt.NDArray[np.void]:
        return self._rows[: len(self)]

    def places(self, seqs: Seqs) -> Places:
        """Return the places of these numbers, in the same order. Memories that left or never were are left out."""
        places = self._numbers.places(seqs)
        here: Places = places[self._rows["flags"][places] & GONE == 0]
        return here

    def seqs(self, places: Places) -> Seqs:
        """Return the numbers of the memories at these places."""
        return self._numbers.numbers(places)

    def next_from(self, seq: int, most: int) -> Seqs:
        """Return the lowest `most` numbers of memories from `seq` on."""
        start = self._numbers.below(seq)
        found = np.flatnonzero(self.rows["flags"][start:] & GONE == 0)[:most] + start
        return self.seqs(found)

    def add(self, memories: Sequence[Memory]) -> None:
        """Add new memories in the order of their numbers, which must be above all others."""
        start, count = len(self), len(memories)
        if start + count > len(self._rows):
            grown = np.zeros(start + count + start // 8 + _MORE, ROW)
            grown[:start] = self.rows
            self._rows = grown
        self._numbers.add(np.array([memory.seq for memory in memories], np.int64))
        self._set(np.arange(start, start + count), _columns(memories))

    def update(self, memories: Sequence[Memory]) -> None:
        """Replace the values of memories that are here."""
        self._set(self.places(np.array([memory.seq for memory in memories], np.int64)), _columns(memories))

    def remove(self, seqs: Seqs) -> None:
        places = self.places(seqs)
        self._rows[places] = 0
        self._rows["flags"][places] = GONE

    def ranked(self, places: Places) -> list[dict[str, Any]]:
        """Return the fields of the memories at these places that their bodies do not have, as for `Memory`."""
        rows = self._rows[places]
        return [
            {
                "seq": seq,
                "importance": importance,
                "last_accessed": last_accessed,
                "access_count": access_count,
                "pinned": bool(flags & PINNED),
            }
            for seq, (importance, last_accessed, access_count, flags) in zip(
                self.seqs(places).tolist(), rows.tolist(), strict=True
            )
        ]

    def _set(self, places: Places, columns: Mapping[str, npt.NDArray[Any]]) -> None:
        for name in ("importance", "last_accessed", "access_count"):
            self._rows[name][places] = columns[name]
        self._rows["flags"][places] = PINNED * columns["pinned"] + CURRENT * columns["current"]


def _columns(memories: Sequence[Memory]) -> Mapping[str, npt.NDArray[Any]]:
    return {
        "importance": np.array([memory.importance for memory in memories], np.float64),
        "last_accessed": np.array([memory.last_accessed for memory in memories], np.int64),
        "access_count": np.array([memory.access_count for memory in memories], np.int64),
        "pinned": np.array([memory.pinned for memory in memories], np.bool_),
        "current": np.array([memory.current for memory in memories], np.bool_),
    }
