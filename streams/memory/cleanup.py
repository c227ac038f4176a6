"""Cleanup job: moves memories that are no longer needed to the archive, and later removes them from it.

The shards find the memories, and this job requests the changes by events of `long-term`, as clients do. If a memory
is pinned, accessed or restored before its event is applied, the event does not change it. If a request is repeated
on the same day, its event has the same id, so it is applied only once.
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

log = logging.getLogger(__name__)

#: Maximum number of memories that one run archives from a shard, and the maximum number that it removes from the
#: shard's archive. All further memories wait for the next run.
EVENTS_A_SHARD = 1000


class CleanupJob:
    """Cleans up on a timer, if the settings enable that, and on request. Times are epoch ms."""

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
        """Clean every shard, if cleanup is enabled and the time is known (`now` is not 0).

        Call it after the memories' states were recomputed, because the candidates depend on these states.
        """
        settings = self._lifecycle.cleanup
        if settings.enabled and not settings.paused and now:
            await self.clean(now)

    async def verdicts(self, now: int, user_id: str | None, limit: int) -> Verdicts:
        """Return the candidates for a cleanup, and their exemptions, without changing anything.

        At most `limit` candidates of each shard, and at most `limit` of its archive, are listed.
        """
        return Verdicts.together([found async for _, found in self._by_shard(now, user_id, limit)])

    async def clean(self, now: int, user_id: str | None = None) -> Verdicts:
        """Request the archiving or removal of the memories in `Verdicts.going`, and return the verdicts.

        These are at most `EVENTS_A_SHARD` memories of each shard, and as many of its archive. Raises `ShardNotHere`
        if another worker has the user's partition.
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
                found = await self._shards.call(
                    partition, lambda shard: shard.cleanup.verdicts(now, self._lifecycle, user_id, limit)
                )
            except ShardNotHere:
                if user_id is not None:
                    raise
                continue  # the partition has just moved to another worker, which cleans it
            yield partition, found

    def _ask(self, partition: int, found: Verdicts, now: int) -> None:
        """Send events for the memories in `found.going`, except for memories to which the last run sent an event."""
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
    """Return the event that archives or removes a candidate. Its id depends on the day.

    So an event of a later day is not a repetition. It is needed if an earlier event had no effect because the memory
    was pinned at that time.
    """
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
