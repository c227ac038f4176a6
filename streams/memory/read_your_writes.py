"""Read-your-writes: waits until a write can be read on this worker, with limits on the time and number of waits.

A record's effect can be read when its batch is processed: a message is in its window, a memory in its shard and
its index, a note with its session, a summary in its file. The commit ledgers know up to which offset that is.
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
#: Requests that may wait at the same time, in total and per token; each holds a connection.
MOST_WAITING: Final = 1_000
MOST_OF_ONE: Final = 100
#: The name of the request's sender, if tokens are required.
asked_by: ContextVar[str | None] = ContextVar("asked_by", default=None)


class Log(Protocol):
    """This worker's progress in its own partitions."""

    async def until_readable(self, topic: str, partition: int, offset: int) -> bool:
        """Wait until a record's effect can be read; False if the partition is not ours, or moves meanwhile."""

    async def is_written(self, topic: str, partition: int, offset: int) -> bool:
        """True if the log reaches this offset, or if the partition is not ours."""


class ReadYourWrites:
    """Waits until the effects of records can be read."""

    def __init__(self, log: Log, most: int = MOST_WAITING, most_of_one: int = MOST_OF_ONE) -> None:
        self._log, self._most, self._most_of_one = log, most, most_of_one
        self._waiting: Counter[str | None] = Counter()

    @contextmanager
    def reserved(self) -> Iterator[None]:
        """Reserve a place to wait, before anything is written. Raises `NotReady` if there is none."""
        who = asked_by.get()
        if self._waiting.total() >= self._most:
            raise NotReady(f"{self._waiting.total()} requests wait for their own writes; ask again")
        if who is not None and self._waiting[who] >= self._most_of_one:
            raise NotReady(f"{self._waiting[who]} requests with this token wait for their own writes; ask again")
        self._waiting[who] += 1
        try:
            yield
        finally:
            self._waiting[who] -= 1
            if not self._waiting[who]:
                del self._waiting[who]

    async def are_written(self, places: Sequence[Place], seconds: float) -> None:
        """Raises `NotReady` if the log does not reach these places: there is no wait for records never written."""
        try:
            async with asyncio.timeout(seconds):
                for place in newest(places):
                    if not await self._log.is_written(*place):
                        raise NotReady(f"there is no record at {place} yet; ask again, or without this token")
        except TimeoutError as exc:
            raise NotReady("the broker does not give the end of the log; ask again") from exc

    async def until(self, places: Sequence[Place], seconds: float) -> bool:
        """True if all effects can be read within this many seconds. Raises `ShardNotHere` if a partition moves."""
        try:
            async with asyncio.timeout(seconds):
                for place in newest(places):
                    if not await self._log.until_readable(*place):
                        raise ShardNotHere(place.partition, MOVED)
        except TimeoutError:
            return False
        return True
