"""Expiry job: removes expired items.

The shards find the items, and this job requests their removal by events of `long-term`, as clients do. An item that
is read or written after the request is not removed. Searches never return expired items, even before their removal.
"""

from __future__ import annotations

from schemas.errors import ShardNotHere
from schemas.events import Expire
from schemas.ids import event_id
from streams.kafka.event_log import EventLog
from streams.shards.owned import OwnedShards
from tables.memories.catalog.changes import ExpiredItem

#: Maximum number of items of a shard that are removed in one run. All further items wait for the next run.
EVENTS_A_SHARD = 1000


class ExpiryJob:
    """Requests the removal of expired items, on a timer."""

    def __init__(self, *, shards: OwnedShards, event_log: EventLog) -> None:
        self._shards, self._event_log = shards, event_log

    async def tick(self, now: int) -> int:
        """Request the removal of items that have expired at `now` (epoch ms; 0 if the time is not known yet).

        Return the number of events that were sent.
        """
        sent = 0
        for partition in self._shards.partitions() if now else ():
            try:
                expired = await self._shards.call(
                    partition, lambda shard: shard.cleanup.expired_items(now, EVENTS_A_SHARD)
                )
            except ShardNotHere:
                continue  # the partition has just moved to another worker, which runs this job for it
            for one in expired:
                self._event_log.append(_event(one, now))
            sent += len(expired)
        if sent:
            await self._event_log.deliver()
        return sent


def _event(expired: ExpiredItem, now: int) -> Expire:
    """Return the event that removes an item. Its id depends only on item and expiry, so repetitions do nothing."""
    return Expire(
        event_id=event_id("expire", *expired),
        user_id=expired.user_id,
        timestamp=now,
        memory_id=expired.memory_id,
        expired_at=expired.expired_at,
    )
