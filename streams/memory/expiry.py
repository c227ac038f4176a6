"""Expiry job: removes expired items. The shards say which; events of `long-term` remove them, like a client's.

An item that is read or written after the request is spared. Answers leave out expired items in any case.
"""

from __future__ import annotations

from schemas.errors import ShardNotHere
from schemas.events import Expire
from schemas.ids import event_id
from streams.kafka.event_log import EventLog
from streams.shards.owned import OwnedShards
from tables.memories.catalog.changes import ExpiredItem
from tables.memories.shard import Shard

#: The most items of a shard in one run; the rest waits for the next.
EVENTS_A_SHARD = 1000


class ExpiryJob:
    """Requests the removal of expired items, on a timer."""

    def __init__(self, *, shards: OwnedShards, event_log: EventLog) -> None:
        self._shards, self._event_log = shards, event_log

    async def tick(self, now: int) -> int:
        """Check every shard at `now` (epoch ms; 0: not known yet). Return how many events were sent."""
        sent = 0
        for partition in self._shards.partitions() if now else ():
            try:
                expired = await self._shards.call(partition, Shard.expired_items, now, EVENTS_A_SHARD)
            except ShardNotHere:
                continue  # it has just moved: its new owner does it
            for one in expired:
                self._event_log.append(_event(one, now))
            sent += len(expired)
        if sent:
            await self._event_log.deliver()
        return sent


def _event(expired: ExpiredItem, now: int) -> Expire:
    """Return the event for an item. Its id changes with the item's expiry only, so a repeated one is applied once."""
    return Expire(
        event_id=event_id("expire", *expired),
        user_id=expired.user_id,
        timestamp=now,
        memory_id=expired.memory_id,
        expired_at=expired.expired_at,
    )
