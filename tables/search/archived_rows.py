"""A cache of the ranking data of users' archived memories. An entry is dropped when the user's memories change.

Texts and vectors are not cached: each search reads the vectors with one SQL statement, and the memories that are
shown with another one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from schemas.memories import Memory
from schemas.sources import speakers_in
from tables.memories.catalog.archive import ArchiveTable
from tables.runs import Places
from tables.search.candidates import Candidates
from tables.search.recent import Recent
from tables.vectors.index import Vectors


@dataclass(frozen=True, slots=True)
class HeldArchive:
    """The ranking data of a user's archived memories, oldest first, and the names of their speakers."""

    candidates: Candidates
    speakers: frozenset[str]

    def __len__(self) -> int:
        return len(self.candidates)

    @property
    def bytes(self) -> int:
        """The estimated size of this object in memory, in bytes."""
        return 1000 + 8 * len(self.candidates.terms.words) + 60 * len(self)


class ArchivedRows:
    """The archived memories of recently searched users. Not thread-safe: the shard serialises its use."""

    def __init__(self, archive: ArchiveTable, recent: Recent) -> None:
        self._archive, self._recent = archive, recent

    def of_user(self, user_id: str) -> HeldArchive:
        key = (self, user_id)
        found: HeldArchive | None = self._recent.get(key)
        if found is None:
            memories = self._archive.of_user(user_id)
            speakers = frozenset(name for memory in memories for name in speakers_in(memory.meta))
            found = HeldArchive(Candidates.of(memories), speakers)
            self._recent.put(key, found, found.bytes)
        return found

    def speakers_of(self, user_id: str) -> frozenset[str] | None:
        """Return the names of the speakers in the user's archived memories; None if there are none."""
        held = self.of_user(user_id)
        return held.speakers if len(held) else None

    def vectors(self, held: HeldArchive) -> Vectors:
        """Return the vectors of the memories in `held`, float32[n, d], in the order of `held`."""
        return self._archive.vectors(held.candidates.seqs.tolist())

    def memories(self, held: HeldArchive, rows: Places) -> list[Memory]:
        """Return the complete memories of these rows of `held`, in the order of `rows`."""
        return self._archive.by_seq(held.candidates.seqs[rows].tolist())

    def forget(self, user_ids: Iterable[str]) -> None:
        """Drop these users from the cache; the next search reads them again."""
        for user_id in user_ids:
            self._recent.drop((self, user_id))

    def forget_all(self) -> None:
        self._recent.drop_all(self)
