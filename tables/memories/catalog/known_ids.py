"""A set in memory of the ids that a shard may hold. An id that is not in the set is certainly new.

    known = KnownIds()
    known.add(hashes_of(ids))
    known.may_hold(hashes_of(others))       # bool[n]; False: the id is certainly new, True: ask the catalog

Ids are stored as 64-bit hashes, in a table with open addressing and linear probing. Hashes are never removed: a
deleted id, or a new id with the same hash as another one, only costs an unneeded SQL query.

**Memory**: a slot has eight bytes. If two thirds of the slots are taken, the table grows by a quarter. So an id takes
12 to 15 bytes. A memory that came as a promotion has two ids, its own and that of its event, which take 24 to 30
bytes. When a shard is opened, the set is filled from the catalog.

The home slot of a hash, where its search begins, is proportional to the hash. So one pass over sorted hashes can fill
a table: each hash goes to its home slot, or right after the previous hash if that slot is taken.
"""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.uint64]
Places = npt.NDArray[np.int64]

#: Odd random numbers, different in each process. So a client that chooses ids cannot choose their slots, and cannot
#: slow down the probing.
_SEEDS = [np.uint64(secrets.randbits(64) | 1) for _ in range(2)]
_SMALLEST = 1_024
_EMPTY = np.uint64(0)
_AT_A_TIME = 65_536
_HALF = np.uint64(32)


def hashes_of(ids: Sequence[uuid.UUID]) -> Hashes:
    """Return the hashes of n ids, uint64[n]. Each process computes different hashes."""
    return hashes_of_bytes(b"".join([identity.int.to_bytes(16, "big") for identity in ids]))


def hashes_of_bytes(raw: bytes | memoryview) -> Hashes:
    """Return the hashes of n ids of sixteen bytes each, stored one after the other: uint64[n]."""
    halves = np.frombuffer(raw, np.uint64)
    mixed = (halves[::2] * _SEEDS[0]) ^ _mixed(halves[1::2] * _SEEDS[1])
    return _mixed(mixed)


def hashes_of_names(names: Iterable[str]) -> Hashes:
    """Return the hashes of n texts, such as user names: uint64[n]."""
    hashes = np.fromiter((hash(name) for name in names), np.int64).view(np.uint64)
    return _mixed(hashes * _SEEDS[0])


def _mixed(hashes: Hashes) -> Hashes:
    """Mix each hash, so that every output bit depends on all input bits (SplitMix64's finalizer). No result is 0."""
    hashes = (hashes ^ (hashes >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    hashes = (hashes ^ (hashes >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    hashes ^= hashes >> np.uint64(31)
    hashes[hashes == _EMPTY] = 1
    return hashes


def _sorted_once(hashes: Hashes) -> Hashes:
    """Sort hashes and remove duplicates. `np.unique` uses a hash table, which takes twenty times as long."""
    hashes.sort()
    first = np.ones(len(hashes), np.bool_)
    np.not_equal(hashes[1:], hashes[:-1], out=first[1:])
    return hashes[first]


class KnownIds:
    """A set of hashes, uint64, that can grow. No hash is 0."""

    def __init__(self) -> None:
        self._slots = np.zeros(_SMALLEST, np.uint64)
        self._at_most = 0

    def __len__(self) -> int:
        """The number of distinct hashes in the set."""
        return int(np.count_nonzero(self._slots))

    @property
    def nbytes(self) -> int:
        """Bytes of memory."""
        return int(self._slots.nbytes)

    def add(self, hashes: Hashes) -> None:
        """Add hashes. A hash that is already in the set changes nothing."""
        self._at_most += len(hashes)
        if 3 * self._at_most > 2 * len(self._slots):
            self._make_room(hashes)
            return
        for start in range(0, len(hashes), _AT_A_TIME):
            self._place(hashes[start : start + _AT_A_TIME])

    def may_hold(self, hashes: Hashes) -> npt.NDArray[np.bool_]:
        """Return whether each hash is in the set, bool[n]."""
        found = np.zeros(len(hashes), np.bool_)
        places, live, size = self._places(hashes), np.arange(len(hashes)), len(self._slots)
        while live.size:
            slots = self._slots[places]
            hit = slots == hashes[live]
            found[live[hit]] = True
            going_on = (slots != _EMPTY) & ~hit
            live, places = live[going_on], (places[going_on] + 1) % size
        return found

    def _places(self, hashes: Hashes) -> Places:
        """Return the home slot of each hash: the first slot for the lowest hash, the last slot for the highest."""
        return ((hashes >> _HALF) * np.uint64(len(self._slots)) >> _HALF).view(np.int64)

    def _make_room(self, more: Hashes) -> None:
        """Move all hashes, and the hashes in `more`, to a table of which at most two thirds are then taken."""
        held = _sorted_once(np.concatenate([self._slots[self._slots != _EMPTY], more]))
        self._at_most = len(held)
        size = len(self._slots)
        while 3 * self._at_most > 2 * size:
            size += size // 4
        self._slots = np.zeros(size, np.uint64)
        numbers = np.arange(len(held))
        places = numbers + np.maximum.accumulate(self._places(held) - numbers)
        inside = int(np.searchsorted(places, size))
        self._slots[places[:inside]] = held[:inside]
        self._place(held[inside:])

    def _place(self, hashes: Hashes) -> None:
        """Insert hashes in rounds. In each round, a hash takes its slot if it is free, or moves to the next slot."""
        places, size = self._places(hashes), len(self._slots)
        while hashes.size:
            free = self._slots[places] == _EMPTY
            self._slots[places[free]] = hashes[free]
            left = self._slots[places] != hashes  # if several hashes took a free slot, the last one has it
            hashes, places = hashes[left], (places[left] + 1) % size
