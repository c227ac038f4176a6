"""Retention job: drops old rows on a timer, so that the shards do not grow for ever.

Each shard drops its own old rows. Among these rows are the ids of applied events, by which a repeated event is
recognised. Once a day, the shard's position in the log is stored as a watermark. When a watermark is old enough, all
events below it count as applied, so their ids are dropped (`tables/memories/catalog/watermarks.py`).
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Any

from schemas.errors import BrokerUnavailable, ShardNotHere
from schemas.settings import RetentionSettings
from schemas.times import now_ms
from streams.runtime.clock import Clock
from streams.shards.owned import OwnedShards
from tables.memories.catalog.watermarks import Watermark

log = logging.getLogger(__name__)

#: Reads a partition's records between two offsets. Arguments: the partition, the first offset, the end (excluded).
Read = Callable[[int, int, int], AsyncGenerator[Sequence[Any], None]]


def digest_of(record: Any) -> str:
    """Return a digest of a record's timestamp, key and value.

    A changed digest at an offset shows that the log was replaced by another log.
    """
    hashed = hashlib.blake2b(digest_size=16)
    for part in (str(record.timestamp).encode(), record.key or b"", record.value or b""):
        hashed.update(len(part).to_bytes(8, "big") + part)
    return hashed.hexdigest()


async def watermark_at(read: Read, partition: int, offset: int) -> Watermark | None:
    """Return the watermark for `offset`: it has the digest of the record directly before the offset.

    Return None if the log has no such record. If the log ends before the offset, `read` may return records from the
    log's beginning, so the offset of the first returned record is checked.
    """
    async with aclosing(read(partition, offset - 1, offset)) as batches:
        async for records in batches:
            first = records[0]
            return Watermark(offset, digest_of(first)) if first.offset == offset - 1 else None
    return None


class RetentionJob:
    """Drops old rows of this worker's shards. `read` reads the log, `now` returns the wall clock (epoch ms)."""

    def __init__(
        self,
        *,
        shards: OwnedShards,
        settings: RetentionSettings,
        clock: Clock,
        read: Read,
        now: Callable[[], int] = now_ms,
    ) -> None:
        self._shards, self._settings, self._clock, self._read, self._now = shards, settings, clock, read, now

    async def tick(self) -> None:
        """Advance the watermark of every shard, and drop its old rows.

        If the broker does not answer, the next tick tries again.
        """
        if not self._shards.ready:
            return
        for partition in self._shards.partitions():
            try:
                await self._advance(partition)
                await self._drop_old(partition)
            except ShardNotHere:
                continue  # the partition has just moved to another worker, which runs this job for it
            except BrokerUnavailable as exc:
                log.info("shard %d: no watermark for now: %s", partition, exc)

    async def _drop_old(self, partition: int) -> None:
        now, wall = self._clock.now(), self._now()
        if not now:
            return
        dropped = await self._shards.call(
            partition, lambda shard: shard.retention.drop_old(now, wall, self._settings)
        )
        if dropped:
            rows = ", ".join(f"{rows} {table}" for table, rows in dropped.items())
            log.info("shard %d: dropped for their age: %s", partition, rows)

    async def _advance(self, partition: int) -> None:
        now = self._now()
        due = await self._shards.call(partition, lambda shard: shard.watermarks.due(now, shard.position()))
        if due is None:
            return
        newest = due.newest
        if newest is not None:
            if await watermark_at(self._read, partition, newest.offset) != newest:
                log.info("shard %d: the log was replaced", partition)
                await self._shards.call(partition, lambda shard: shard.watermarks.start_over())
            elif newest.offset > due.position:
                return  # the shard reads the log again, and has not reached its newest watermark yet
        mark = await watermark_at(self._read, partition, due.position)
        if mark is not None:
            keep_days = self._settings.applied_days
            dropped = await self._shards.call(partition, lambda shard: shard.watermarks.keep(mark, now, keep_days))
            if dropped:
                log.info("shard %d: %d ids of applied events are below its low watermark", partition, dropped)
