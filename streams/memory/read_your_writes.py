"""When what was written can be read on this worker: waited for by event, bounded in time and in number.

A record's effect can be read when its batch is processed: a message is in its window, a memory in its shard and
its index, a note with its session, a summary in its file. Up to where that is, the hot path's ledgers know.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final, Protocol

from schemas.errors import NotReady, ShardNotHere
from schemas.places import Place, newest

MOVED: Final = "its partition is on another worker, or moving; ask again"
#: Requests that may wait at the same time, all together and of one token; each holds a connection.
MOST_WAITING: Final = 1_000
MOST_OF_ONE: Final = 100
#: Whose request it is, where tokens are asked for.
asked_by: ContextVar[str | None] = ContextVar("asked_by", default=None)


class Log(Protocol):
    """How far this worker is in the partitions that are its own."""

    async def until_readable(self, topic: str, partition: int, offset: int) -> bool:
        """Wait for what a record brings; False where the partition is not ours, or moves meanwhile."""

    async def is_written(self, topic: str, partition: int, offset: int) -> bool:
        """Whether the log reaches so far; True where the partition is not ours."""


class ReadYourWrites:
    """Waits for what records bring."""

    def __init__(self, log: Log, most: int = MOST_WAITING, most_of_one: int = MOST_OF_ONE) -> None:
        self._log, self._most, self._most_of_one = log, most, most_of_one
        self._waiting: Counter[str | None] = Counter()

    @contextmanager
    def reserved(self) -> Iterator[None]:
        """A place among those who wait, taken before anything is written. Raises `NotReady` where there is none."""
        who = asked_by.get()
        if self._waiting.total() >= self._most:
            raise NotReady(f"{self._waiting.total()} requests wait for what they wrote; ask again")
        if who is not None and self._waiting[who] >= self._most_of_one:
            raise NotReady(f"{self._waiting[who]} requests with this token wait for what they wrote; ask again")
        self._waiting[who] += 1
        try:
            yield
        finally:
            self._waiting[who] -= 1
            if not self._waiting[who]:
                del self._waiting[who]

    async def are_written(self, places: Sequence[Place], seconds: float) -> None:
        """Raises `NotReady` where the log does not reach so far: what was never written is not waited for."""
        try:
            async with asyncio.timeout(seconds):
                for place in newest(places):
                    if not await self._log.is_written(*place):
                        raise NotReady(f"nothing lies at {place} yet; ask again, or without this token")
        except TimeoutError as exc:
            raise NotReady("the broker does not say how far the log reaches; ask again") from exc

    async def until(self, places: Sequence[Place], seconds: float) -> bool:
        """Whether it can all be read within so many seconds. Raises `ShardNotHere` where a partition moves."""
        try:
            async with asyncio.timeout(seconds):
                for place in newest(places):
                    if not await self._log.until_readable(*place):
                        raise ShardNotHere(place.partition, MOVED)
        except TimeoutError:
            return False
        return True
