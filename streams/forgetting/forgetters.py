"""Applies forget commands to a worker's state outside of the shards, after the shard has applied them."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from schemas.events import Forget, ForgetUser, LongTermEvent
from streams.runtime.clock import ingested


class Forgetting(NamedTuple):
    """A forget command, and the time at which it was appended to the log (epoch ms)."""

    event: Forget | ForgetUser
    at: int


def may_forget(record: Any) -> bool:
    """Return False if the record is certainly not a forget command.

    So a search for forget commands need not decode it.
    """
    value = record.value or b""
    return b"forget" in value or b"\\u" in value


def forgettings(read: Iterable[tuple[Any, LongTermEvent]], now: int) -> list[Forgetting]:
    """Return the forget commands in `read`, which has pairs of a record and its event.

    `now` (epoch ms) is the time at which the records were read.
    """
    return [
        Forgetting(event, ingested(record.timestamp, now))
        for record, event in read
        if isinstance(event, Forget | ForgetUser)
    ]


Named = tuple[str, uuid.UUID, int]
"""A memory's user, its id, and the time of its creation (epoch ms)."""

Tombstones = Callable[[int, Sequence[Named]], Awaitable[Sequence[bool]]]
"""A function that gets a partition and some of its memories, and returns for each memory whether it was forgotten."""


class Windows(Protocol):
    """The operations on a worker's short-term windows that forgetting needs."""

    def forget_user(self, partition: int, user_id: str, until: int) -> None:
        """Remove the user's messages up to the time `until` (epoch ms) from the windows."""

    def memories_of(self, partition: int, user_id: str) -> list[Named]:
        """Return the memories that the user's closed exchanges became, or would become by a promotion."""

    def forget_memories(self, partition: int, user_id: str, ids: Collection[uuid.UUID]) -> None:
        """Remove the exchanges of the memories `ids` from the user's windows."""


class Summaries(Protocol):
    """The operations on daily summaries that forgetting needs."""

    async def forget_user(self, partition: int, user_id: str) -> None:
        """Remove all summaries of the user, and drop pending requests for summaries of the user."""

    async def forget_earlier(self, user_id: str, until: int) -> None:
        """Remove the user's summaries that were written up to the time `until` (epoch ms)."""


class Forgetters:
    """Applies forget commands to windows and summaries.

    `told` is called for each forget command, because other copies of the data may still have the forgotten content.
    If `tombstones` is given, exchanges in the windows that became a forgotten memory are removed too, including those
    that were merged into it as near-copies. `erase` is called with the partition and the user of each command, so
    that the bytes of removed rows leave the disk. `told_of` is called with the user of each command, so that texts of
    the user leave the worker's memory.
    """

    def __init__(
        self,
        windows: Windows,
        summaries: Summaries | None = None,
        told: Callable[[], None] = lambda: None,
        tombstones: Tombstones | None = None,
        erase: Callable[[int, str], None] = lambda partition, user_id: None,
        told_of: Callable[[str], None] = lambda user_id: None,
    ) -> None:
        self._erase, self._told_of = erase, told_of
        self._windows, self._summaries, self._told, self._tombstones = windows, summaries, told, tombstones

    async def follow(self, partition: int, forgotten: Sequence[Forgetting]) -> None:
        """Apply forget commands to windows and summaries. The partition's shard has just applied them."""
        for event, at in forgotten:
            self._told()
            self._told_of(event.user_id)
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
        """Apply forget commands that are read again, because the shard on this worker's disk was behind the log.

        An earlier owner of the partition has already applied them to the windows. But files on this worker's disk may
        still contain the forgotten data.
        """
        for event, at in forgotten:
            self._told()
            self._told_of(event.user_id)
            self._erase(partition, event.user_id)
            if isinstance(event, ForgetUser) and self._summaries is not None:
                await self._summaries.forget_earlier(event.user_id, at)
