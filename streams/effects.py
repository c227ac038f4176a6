"""When what was written can be read on this worker: waited for by event, bounded in time and in number.

A record's effect can be read when its batch is processed: a message is in its window, a memory in its shard and
its index, a note with its session, a summary in its file. Up to where that is, the hot path's ledgers know.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final, Protocol

from schemas.errors import NotReady, ShardNotHere
from schemas.places import Place, newest

MOVED: Final = "its partition is on another worker, or moving; ask again"
#: Requests that may wait at the same time; each holds a connection.
MOST_WAITING: Final = 1_000


class Log(Protocol):
    """How far this worker is in the partitions that are its own."""

    async def until_readable(self, topic: str, partition: int, offset: int) -> bool:
        """Wait for what a record brings; False where the partition is not ours, or moves meanwhile."""


class Effects:
    """Waits for what records bring."""

    def __init__(self, log: Log, most: int = MOST_WAITING) -> None:
        self._log, self._most, self._waiting = log, most, 0

    @contextmanager
    def reserved(self) -> Iterator[None]:
        """A place among those who wait, taken before anything is written. Raises `NotReady` where there is none."""
        if self._waiting >= self._most:
            raise NotReady(f"{self._waiting} requests wait for what they wrote; ask again")
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1

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
