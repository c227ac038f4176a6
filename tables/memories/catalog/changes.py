"""The changes that one batch of events makes in a shard, as rows for the catalog's tables."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from schemas.memories import Memory
from schemas.times import SKEW_MS
from tables.memories.catalog.archive import ToArchive
from tables.memories.catalog.erasing import Named
from tables.vectors.index import Vectors, matrix


class NewLink(NamedTuple):
    user_id: str
    source_id: uuid.UUID
    target_id: uuid.UUID
    kind: str
    weight: float
    created_at: int


class Unlinked(NamedTuple):
    user_id: str
    source_id: uuid.UUID
    target_id: uuid.UUID
    kind: str


class Merged(NamedTuple):
    """A near-copy, and the memory into which it was merged."""

    memory_id: uuid.UUID
    user_id: str
    into_id: uuid.UUID
    #: The creation time of the near-copy (epoch ms).
    said_at: int


class Move(NamedTuple):
    """A change of a memory's state, or a move to or from the archive. `score` is as of `occurred_at` (epoch ms)."""

    memory_id: uuid.UUID
    user_id: str
    from_state: str
    to_state: str
    score: float
    occurred_at: int
    reason: str


class Done(NamedTuple):
    """An entry of a memory's history: an event, its time (`occurred_at`, epoch ms), and its details."""

    memory_id: uuid.UUID
    user_id: str
    occurred_at: int
    event: str
    details: dict[str, Any]


class ExpiredItem(NamedTuple):
    """An item that has expired, and the time of its expiry (epoch ms)."""

    user_id: str
    memory_id: uuid.UUID
    expired_at: int


class Holdings(NamedTuple):
    """The number of a user's memories, and the creation times of the oldest and the newest (epoch ms)."""

    user_id: str
    memories: int
    oldest: int
    newest: int


class UserCount(NamedTuple):
    """The number of a user's memories, and the time of the newest creation or access of one of them (epoch ms)."""

    user_id: str
    memories: int
    newest: int


class Tombstone(NamedTuple):
    """The record of a forgotten memory, or, if `memory_id` is None, of all the user's memories up to `forgotten_at`.

    `seen_at` is the time of the newest memory that the user had at the forget command. Both times are epoch ms.
    """

    user_id: str
    memory_id: uuid.UUID | None
    forgotten_at: int
    seen_at: int | None = None

    def as_of(self, now: int) -> Tombstone:
        """Return the tombstone as it applies at `now` (epoch ms) to later events of the log.

        If `forgotten_at` is more than `SKEW_MS` in the future, the clock of the command was ahead. Then the tombstone
        reaches only up to `seen_at`, if that is known.
        """
        if self.seen_at is None or self.forgotten_at <= now + SKEW_MS:
            return self
        return self._replace(forgotten_at=self.seen_at)

    def covers(self, user_id: str, memory_id: uuid.UUID, created_at: int) -> bool:
        """Return whether the tombstone is for this memory (user, id, creation time in epoch ms).

        A tombstone without `memory_id` is for all memories that its user created up to `forgotten_at`.
        """
        of_all = self.memory_id is None and created_at <= self.forgotten_at
        return self.user_id == user_id and (self.memory_id == memory_id or of_all)


@dataclass(slots=True)
class Changes:
    """The changes of one batch of events, written in one transaction.

    The keys of `new`, `vectors` and `updated` are numbers (`seq`), and so are the elements of `unarchived` and
    `dropped`. Only the vectors of `new` are written. All rows with words of the `forgotten` memories are erased, even
    if the memories no longer exist. The same is done for all memories that the `forgotten_users` have had so far.
    """

    new: dict[int, Memory] = field(default_factory=dict)
    vectors: dict[int, Vectors] = field(default_factory=dict)
    updated: dict[int, Memory] = field(default_factory=dict)
    archived: list[ToArchive] = field(default_factory=list)
    unarchived: list[int] = field(default_factory=list)
    dropped: list[int] = field(default_factory=list)
    forgotten: list[Named] = field(default_factory=list)
    forgotten_users: list[str] = field(default_factory=list)
    links: list[NewLink] = field(default_factory=list)
    unlinked: list[Unlinked] = field(default_factory=list)
    merged: list[Merged] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)
    history: list[Done] = field(default_factory=list)
    tombstones: list[Tombstone] = field(default_factory=list)
    applied: list[Named] = field(default_factory=list)
    #: The count of numbers (`seq`) that were given to new rows.
    numbered: int = 0
    #: An offset of the log that is above the offsets of the events; None if they do not come from the log.
    log_end: int | None = None

    def matrix(self) -> Vectors:
        """Return the vectors of the memories in `new`, float32[n, d], in the same order; `new` must not be empty."""
        return matrix([self.vectors[seq] for seq in self.new])

    @property
    def changes_archive(self) -> bool:
        """True if the cached archive rows of the batch's users must be read again."""
        return bool(self.archived or self.unarchived or self.forgotten or self.forgotten_users)

    @property
    def leaving(self) -> list[int]:
        """The numbers of the rows that leave the table `memories`, and whose vectors leave the index."""
        return [*self.dropped, *(row.seq for row in self.archived)]

    def staying(self, memories: Mapping[int, Memory]) -> list[Memory]:
        """Return those memories of `new` or `updated` whose rows stay in the table `memories`."""
        leaving = set(self.leaving)
        return [memory for seq, memory in memories.items() if seq not in leaving]
