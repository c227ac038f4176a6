"""What search rows return about a user's memories, and the estimated sizes of what they cache."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import orjson

from schemas.memories import Memory
from tables.runs import Places
from tables.search.stated import Stated
from tables.search.terms import Terms
from tables.vectors.index import Seqs

#: The estimated bytes of a `Memory` object without its text, metadata and message ids.
_MEMORY_BYTES: Final = 700


class Living(NamedTuple):
    """The number of a user's current memories (`Memory.current`), and the number of these that are not pinned."""

    current: int
    loose: int


class Sessions(NamedTuple):
    """For each memory of a user: its `session_number`, uint64[n], and its creation time (epoch ms), int64[n]."""

    numbers: npt.NDArray[np.uint64]
    created_at: Seqs


@dataclass(frozen=True, slots=True)
class Held:
    """The data of a user's memories, oldest first: their places, and fields that no access changes.

    Valid until the user's memories change.
    """

    places: Places
    seqs: Seqs
    sessions: Sessions
    terms: Terms
    stated: Stated
    previous: Seqs
    speakers: frozenset[str]

    def __len__(self) -> int:
        return len(self.places)

    @property
    def bytes(self) -> int:
        """The estimated size of this object in memory, in bytes."""
        return 1000 + 8 * len(self.terms.words) + 52 * len(self) + 24 * len(self.stated)


class Listed(NamedTuple):
    """All memories of a user, oldest first, and their estimated size in bytes."""

    memories: tuple[Memory, ...]
    bytes: int


def bytes_of(memories: Iterable[Memory]) -> int:
    """Estimate the size of these memories, in bytes. Metadata takes about four times as much as its JSON."""
    return 500 + sum(
        _MEMORY_BYTES + sys.getsizeof(memory.text) + 4 * len(orjson.dumps(memory.meta)) + 80 * len(memory.message_ids)
        for memory in memories
    )
