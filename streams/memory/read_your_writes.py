"""Read-your-writes: a request can wait until its write can be read on this worker. The waits are limited.

A record's effect can be read when the record's batch is processed. Then a message is in its window, a memory in its
shard and its index, a note with its session, and a summary in its file. The commit ledgers know the offsets up to
which batches are processed.
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
#: Maximum number of requests that wait at the same time, in total and per token. Each of these holds a connection.
MOST_WAITING: Final = 1_000
MOST_OF_ONE: Final = 100
#: The name of the sender of the current request; None if no tokens are required.
asked_by: ContextVar[str | None] = ContextVar("asked_by", default=None)


class Log(Protocol):
    """The log, and this worker's progress in it for the partitions that it owns."""

    async def until_readable(self, topic: str, partition: int, offset: int) -> bool:
        """Wait until a record's effect can be read, and return True.

        Return False if another worker has the partition, or if the partition moves.
        """

    async def is_written(self, topic: str, partition: int, offset: int) -> bool:
        """True if the log has a record at this offset already, or if another worker has the partition."""


class ReadYourWrites:
    """Waits until the effects of written records can be read on this worker."""

    def __init__(self, log: Log, most: int = MOST_WAITING, most_of_one: int = MOST_OF_ONE) -> None:
        self._log, self._most, self._most_of_one = log, most, most_of_one
        self._waiting: Counter[str | None] = Counter()

    @contextmanager
    def reserved(self) -> Iterator[None]:
        """Count a request as waiting within the `with` block. Raises `NotReady` if too many requests wait.

        Enter the block before the write, so that a refused request writes nothing.
        """
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
        """Check that the log has records at these places. Raises `NotReady` if one is missing.

        `seconds` limits the check. Without it, a caller could wait for records that are never written.
        """
        try:
            async with asyncio.timeout(seconds):
                for place in newest(places):
                    if not await self._log.is_written(*place):
                        raise NotReady(f"there is no record at {place} yet; ask again, or without this token")
        except TimeoutError as exc:
            raise NotReady("the broker does not give the end of the log; ask again") from exc

    async def until(self, places: Sequence[Place], seconds: float) -> bool:
        """Wait until the effects of the records at these places can be read, and return True.

        Return False if that takes more than `seconds`. Raises `ShardNotHere` if another worker has one of the
        partitions, or if one of them moves.
        """
        try:
            async with asyncio.timeout(seconds):
                for place in newest(places):
                    if not await self._log.until_readable(*place):
                        raise ShardNotHere(place.partition, MOVED)
        except TimeoutError:
            return False
        return True
