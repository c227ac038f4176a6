"""What a worker keeps of users outside of their shards goes after the shard has forgotten them."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from schemas.events import Forget, ForgetUser, LongTermEvent
from streams.runtime.clock import ingested


class Forgetting(NamedTuple):
    """A command to forget, and when it came into the log (epoch ms)."""

    event: Forget | ForgetUser
    at: int


def may_forget(record: Any) -> bool:
    """Whether it can be a command to forget: of a log that is looked through for those, the rest is not decoded."""
    value = record.value or b""
    return b"forget" in value or b"\\u" in value


def forgettings(read: Iterable[tuple[Any, LongTermEvent]], now: int) -> list[Forgetting]:
    """The commands to forget among records that were read at `now` (epoch ms), each with its event."""
    return [
        Forgetting(event, ingested(record.timestamp, now))
        for record, event in read
        if isinstance(event, Forget | ForgetUser)
    ]


Named = tuple[str, uuid.UUID, int]
"""A memory's user, its id, and when it was created (epoch ms)."""

Tombstones = Callable[[int, Sequence[Named]], Awaitable[Sequence[bool]]]
"""Which of a partition's memories are forgotten."""


class Windows(Protocol):
    """Short-term windows."""

    def forget_user(self, partition: int, user_id: str, until: int) -> None:
        """What came up to `until` (epoch ms) goes."""

    def memories_of(self, partition: int, user_id: str) -> list[Named]:
        """The memories that the user's exchanges are, or would be."""

    def forget_memories(self, partition: int, user_id: str, ids: Collection[uuid.UUID]) -> None:
        """The exchanges that are these memories go."""


class Summaries(Protocol):
    """Daily summaries."""

    async def forget_user(self, partition: int, user_id: str) -> None:
        """All of them go, and none is written of what was asked for before."""

    async def forget_earlier(self, user_id: str, until: int) -> None:
        """Those go that were written up to `until` (epoch ms)."""


class Forgetters:
    """`told` is called when something was forgotten: copies that others make may hold it still.

    Exchanges of windows go with the memory that they are where the shard's `tombstones` can be asked: they have the
    near-copies' names, too. `erase` is called for each user of whom rows go: their bytes are to leave the disk.
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
        """The shard of these users' partition has forgotten what was to be."""
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
        """Another worker has followed already, but where the files here were its own."""
        for event, at in forgotten:
            self._told()
            self._erase(partition, event.user_id)
            if isinstance(event, ForgetUser) and self._summaries is not None:
                await self._summaries.forget_earlier(event.user_id, at)
