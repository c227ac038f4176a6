"""Items whose time is over are removed: the shards say which, and events of `long-term` do it, like everybody's.

An item that was read or written after it was asked for is spared. Answers are without what has expired in any case.
"""

from __future__ import annotations

from schemas.errors import ShardNotHere
from schemas.events import Expire
from schemas.ids import event_id
from streams.kafka.event_log import EventLog
from streams.shards.owned import OwnedShards
from tables.memories.catalog.catalog import ExpiredItem
from tables.memories.shard import Shard

#: Of a shard, at one time; the rest waits for the next.
EVENTS_A_SHARD = 1000


class ExpiryJob:
    """Asks for the removal of what has expired, on a timer."""

    def __init__(self, *, shards: OwnedShards, event_log: EventLog) -> None:
        self._shards, self._event_log = shards, event_log

    async def tick(self, now: int) -> int:
        """Every shard once, as of `now` (epoch ms; 0: it is not known yet). Returns how many events were sent."""
        sent = 0
        for partition in self._shards.partitions() if now else ():
            try:
                expired = await self._shards.call(partition, Shard.expired_items, now, EVENTS_A_SHARD)
            except ShardNotHere:
                continue  # it has just moved: its new owner sees to it
            for one in expired:
                self._event_log.append(_event(one, now))
            sent += len(expired)
        if sent:
            await self._event_log.deliver()
        return sent


def _event(expired: ExpiredItem, now: int) -> Expire:
    """The same until the item lasts longer: one that is asked for twice is applied once."""
    return Expire(
        event_id=event_id("expire", *expired),
        user_id=expired.user_id,
        timestamp=now,
        memory_id=expired.memory_id,
        expired_at=expired.expired_at,
    )
