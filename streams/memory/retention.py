"""Retention job: drops rows that would otherwise grow for ever, on a timer and never while a message is processed.

Each shard drops what is too old. Once a day, its position in the log becomes a watermark: below one that is old
enough, events need no row of their own to be known as applied (`tables/memories/catalog/watermarks.py`).
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Any

from schemas.errors import BrokerUnavailable, ShardNotHere
from schemas.times import now_ms
from streams.runtime.clock import Clock
from streams.shards.owned import OwnedShards
from tables.memories.catalog.watermarks import Watermark
from tables.memories.shard import Shard

log = logging.getLogger(__name__)

#: Reads the records of a partition between two offsets.
Read = Callable[[int, int, int], AsyncGenerator[Sequence[Any], None]]


def digest_of(record: Any) -> str:
    """Return a digest that distinguishes a record from the one at the same offset in another log."""
    hashed = hashlib.blake2b(digest_size=16)
    for part in (str(record.timestamp).encode(), record.key or b"", record.value or b""):
        hashed.update(len(part).to_bytes(8, "big") + part)
    return hashed.hexdigest()


async def watermark_at(read: Read, partition: int, offset: int) -> Watermark | None:
    """Return the watermark of this offset; None if the log has no record directly before it.

    A log that ends before the offset may be read from its beginning, so the first returned record decides.
    """
    async with aclosing(read(partition, offset - 1, offset)) as batches:
        async for records in batches:
            first = records[0]
            return Watermark(offset, digest_of(first)) if first.offset == offset - 1 else None
    return None


class RetentionJob:
    """Keeps the shards of this worker small. `read` reads the log; `now` is epoch ms by the wall clock."""

    def __init__(self, *, shards: OwnedShards, clock: Clock, read: Read, now: Callable[[], int] = now_ms) -> None:
        self._shards, self._clock, self._read, self._now = shards, clock, read, now

    async def tick(self) -> None:
        """Handle every shard once. If the broker does not answer, the next tick tries again."""
        if not self._shards.ready:
            return
        for partition in self._shards.partitions():
            try:
                await self._advance(partition)
                if now := self._clock.now():
                    dropped = await self._shards.call(partition, Shard.drop_old, now, self._now())
                    if dropped:
                        log.info(
                            "shard %d: dropped for their age: %s",
                            partition,
                            ", ".join(f"{rows} {table}" for table, rows in dropped.items()),
                        )
            except ShardNotHere:
                continue  # it has just moved: its new owner does it
            except BrokerUnavailable as exc:
                log.info("shard %d: no watermark for now: %s", partition, exc)

    async def _advance(self, partition: int) -> None:
        due = await self._shards.call(partition, Shard.due_watermark, self._now())
        if due is None:
            return
        newest = due.newest
        if newest is not None:
            if await watermark_at(self._read, partition, newest.offset) != newest:
                log.info("shard %d: the log was replaced", partition)
                await self._shards.call(partition, Shard.begin_log_anew)
            elif newest.offset > due.position:
                return  # the log is just being read again
        mark = await watermark_at(self._read, partition, due.position)
        if mark is not None:
            dropped = await self._shards.call(partition, Shard.keep_watermark, mark, self._now())
            if dropped:
                log.info("shard %d: %d ids of applied events are below its low watermark", partition, dropped)
