"""Memories that are no longer needed are moved to the archive, and later removed from it.

The shards say which memories are due; this job asks for the change by events of `long-term`, as clients do. A memory
that is pinned, accessed or restored before its event comes back is spared. On one day, the same request has the same
event id.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import AsyncIterator

from schemas.errors import ShardNotHere
from schemas.events import Archive, Remove
from schemas.ids import event_id
from schemas.settings import LifecycleSettings
from schemas.topics import partition_of
from streams.kafka.event_log import EventLog
from streams.shards.owned import OwnedShards
from streams.telemetry.metrics import Metrics
from tables.analysts.statistics import DAY_MS
from tables.memories.catalog.cleanup import Candidate, Verdicts
from tables.memories.shard import Shard

log = logging.getLogger(__name__)

#: Of a shard's memories, and out of its archive, at one time; the rest waits for the next.
EVENTS_A_SHARD = 1000


class CleanupJob:
    """Cleans up on a timer where that is enabled, or when it is told to. Moments are epoch ms."""

    def __init__(
        self,
        *,
        shards: OwnedShards,
        event_log: EventLog,
        metrics: Metrics,
        partitions: int,
        lifecycle: LifecycleSettings,
    ) -> None:
        self._shards, self._event_log, self._metrics = shards, event_log, metrics
        self._partitions, self._lifecycle = partitions, lifecycle
        self._asked: dict[int, set[uuid.UUID]] = {}

    async def tick(self, now: int) -> None:
        """Every shard once, as of its last recompute: what goes has the state that it goes for."""
        settings = self._lifecycle.cleanup
        if settings.enabled and not settings.paused and now:
            await self.clean(now)

    async def verdicts(self, now: int, user_id: str | None, limit: int) -> Verdicts:
        """What `clean` would do, and what not; at most `limit` candidates of each shard and its archive."""
        return Verdicts.together([found async for _, found in self._by_shard(now, user_id, limit)])

    async def clean(self, now: int, user_id: str | None = None) -> Verdicts:
        """Ask for all that it is time for, at most `EVENTS_A_SHARD` at a time; `going` is what is asked for.

        Raises `ShardNotHere` where the user's partition is not this worker's.
        """
        cleaned = []
        async for partition, found in self._by_shard(now, user_id, EVENTS_A_SHARD):
            self._ask(partition, found, now)
            await self._event_log.deliver()
            cleaned.append(found)
        return Verdicts.together(cleaned)

    async def _by_shard(self, now: int, user_id: str | None, limit: int) -> AsyncIterator[tuple[int, Verdicts]]:
        all_here = self._shards.partitions()
        for partition in all_here if user_id is None else [partition_of(user_id, self._partitions)]:
            try:
                found = await self._shards.call(partition, Shard.cleanup, now, self._lifecycle, user_id, limit)
            except ShardNotHere:
                if user_id is not None:
                    raise
                continue  # it has just moved: its new owner cleans it
            yield partition, found

    def _ask(self, partition: int, found: Verdicts, now: int) -> None:
        """Post the events, without those that were posted the last time and have not come back."""
        before = self._asked.get(partition, set())
        events = [_event(candidate, now) for candidate in found.going]
        new = [event for event in events if event.event_id not in before]
        for event in new:
            self._event_log.append(event)
            self._metrics.cleanup.labels(f"{event.type}d").inc()
        self._asked[partition] = {event.event_id for event in events}
        if new:
            log.info(
                "shard %d: cleanup archives %d memories and removes %d; exempt: %s",
                partition,
                sum(isinstance(event, Archive) for event in new),
                sum(isinstance(event, Remove) for event in new),
                ", ".join(f"{number} {exemption}" for exemption, number in found.exempt.items()) or "none",
            )


def _event(candidate: Candidate, now: int) -> Archive | Remove:
    """What is asked for; a day later again, in case that it was spared for a pin that is gone."""
    kind = Remove if candidate.cause == "archived" else Archive
    reason = "retention" if kind is Remove else "cleanup"
    return kind(
        event_id=event_id(reason, candidate.memory_id, candidate.last_accessed, now // DAY_MS),
        user_id=candidate.user_id,
        timestamp=now,
        memory_id=candidate.memory_id,
        reason=reason,
        last_accessed=candidate.last_accessed,
    )
