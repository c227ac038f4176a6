"""Applies forget commands to a worker's state outside of the shards, after the shard has applied them."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from schemas.events import Forget, ForgetUser, LongTermEvent
from streams.runtime.clock import ingested


class Forgetting(NamedTuple):
    """A forget command, and when it was appended to the log (epoch ms)."""

    event: Forget | ForgetUser
    at: int


def may_forget(record: Any) -> bool:
    """True if the record may be a forget command, so that a scan for these need not decode all other records."""
    value = record.value or b""
    return b"forget" in value or b"\\u" in value


def forgettings(read: Iterable[tuple[Any, LongTermEvent]], now: int) -> list[Forgetting]:
    """Return the forget commands among records, given with their events, that were read at `now` (epoch ms)."""
    return [
        Forgetting(event, ingested(record.timestamp, now))
        for record, event in read
        if isinstance(event, Forget | ForgetUser)
    ]


Named = tuple[str, uuid.UUID, int]
"""A memory's user, its id, and when it was created (epoch ms)."""

Tombstones = Callable[[int, Sequence[Named]], Awaitable[Sequence[bool]]]
"""Returns for each of a partition's memories whether it is forgotten."""


class Windows(Protocol):
    """Short-term windows."""

    def forget_user(self, partition: int, user_id: str, until: int) -> None:
        """Remove the user's content that came up to `until` (epoch ms)."""

    def memories_of(self, partition: int, user_id: str) -> list[Named]:
        """The memories that the user's exchanges became, or would become."""

    def forget_memories(self, partition: int, user_id: str, ids: Collection[uuid.UUID]) -> None:
        """Remove the exchanges of these memories."""


class Summaries(Protocol):
    """Daily summaries."""

    async def forget_user(self, partition: int, user_id: str) -> None:
        """Remove all of the user's summaries; earlier requests are not written any more."""

    async def forget_earlier(self, user_id: str, until: int) -> None:
        """Remove the summaries that were written up to `until` (epoch ms)."""


class Forgetters:
    """`told` is called for each forget command: copies made elsewhere may still hold the forgotten content.

    With the shard's `tombstones`, window exchanges are removed with their memories; the tombstones name near-copies,
    too. `erase` is called for each user whose rows are removed, so that their bytes leave the disk.
    """

    def __init__(
        self,
        windows: Windows,
        summaries: Summaries | None = None,
        told: Callable[[], None] = lambda: None,
        tombstones: Tombstones | None = None,
        erase: Callable[[int, str], None] = lambda partition, user_id: None,
    ) -> None:
        self._erase = erase
        self._windows, self._summaries, self._told, self._tombstones = windows, summaries, told, tombstones

    async def follow(self, partition: int, forgotten: Sequence[Forgetting]) -> None:
        """Apply commands that the partition's shard has just applied."""
        for event, at in forgotten:
            self._told()
            if isinstance(event, ForgetUser):
                self._windows.forget_user(partition, event.user_id, max(event.timestamp, at))
                if self._summaries is not None:
                    await self._summaries.forget_user(partition, event.user_id)
            elif self._tombstones is not None and (held := self._windows.memories_of(partition, event.user_id)):
                gone = await self._tombstones(partition, held)
                ids = {identity for (_, identity, _), is_gone in zip(held, gone, strict=True) if is_gone}
                if ids:
                    self._windows.forget_memories(partition, event.user_id, ids)
            self._erase(partition, event.user_id)

    async def follow_again(self, partition: int, forgotten: Sequence[Forgetting]) -> None:
        """Apply commands that are read again: an earlier owner has followed them, except in files only kept here."""
        for event, at in forgotten:
            self._told()
            self._erase(partition, event.user_id)
            if isinstance(event, ForgetUser) and self._summaries is not None:
                await self._summaries.forget_earlier(event.user_id, at)
