"""Lifecycle job: recomputes each shard's states on a timer, and publishes changes to the transitions topic."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import uuid
from collections import Counter

from aiokafka.errors import KafkaError

from schemas.errors import ShardNotHere
from schemas.memories import State
from schemas.settings import LifecycleSettings
from schemas.topics import Topics, key_of
from streams.kafka.commit.outbox import Outbox
from streams.runtime.clock import Clock
from streams.shards.owned import OwnedShards
from streams.telemetry.metrics import Metrics
from tables.analysts.statistics import ScoreDistribution, distribution
from tables.memories.shard import Shard

log = logging.getLogger(__name__)

#: `SLICE`: number of memories that are prepared for search in one call, during which searches wait. `SLICES`: maximum
#: number of such calls for a shard in one run.
SLICE = 256
SLICES = 8


class LifecycleJob:
    """Recomputes states, publishes transitions, and sets the gauges of states and scores."""

    def __init__(
        self,
        *,
        shards: OwnedShards,
        outbox: Outbox,
        metrics: Metrics,
        clock: Clock,
        topics: Topics,
        lifecycle: LifecycleSettings,
    ) -> None:
        self._shards, self._outbox, self._metrics = shards, outbox, metrics
        self._clock, self._topics, self._lifecycle = clock, topics, lifecycle

    async def recompute(self) -> int:
        """Recompute the states of all memories, as of the clock's time. Return this time (epoch ms).

        If the clock or the shards are not ready, do nothing and return 0.
        """
        now = self._clock.now()
        if not now or not self._shards.ready:
            return 0
        totals = dict.fromkeys(State, 0)
        points: Counter[int] = Counter()
        for partition in self._shards.partitions():
            try:
                await self._shards.call(partition, Shard.recompute, now, self._lifecycle)
                await self._publish(partition)
                counts = await self._shards.call(
                    partition, lambda shard: shard.ageing.state_counts(now, self._lifecycle)
                )
                points.update(
                    await self._shards.call(partition, lambda shard: shard.ageing.score_points(now, self._lifecycle))
                )
            except ShardNotHere:
                continue  # the partition has just moved to another worker, which recomputes it
            for state, count in counts.items():
                totals[state] += count
        for state, count in totals.items():
            self._metrics.states.labels(state.value).set(count)
        self._show(await asyncio.to_thread(distribution, points))
        return now

    def _show(self, scores: ScoreDistribution) -> None:
        for part in scores.histogram:
            self._metrics.scores.labels(part["from_score"]).set(part["memories"])
        for side in ("low", "high"):
            beyond = sum(outlier["memories"] for outlier in scores.outliers if outlier["side"] == side)
            self._metrics.outliers.labels(side).set(beyond)

    async def _publish(self, partition: int) -> None:
        """Publish the shard's new transitions, each at least once.

        Transitions are marked as published after the broker has acknowledged them. The next `recompute` sends
        unmarked transitions again.
        """
        deprecated: list[uuid.UUID] = []
        while transitions := await self._shards.call(partition, lambda shard: shard.ageing.unpublished()):
            try:
                sent = [
                    await self._outbox.produce(
                        self._topics.transitions,
                        transition.model_dump_json(by_alias=True).encode(),
                        key=key_of(transition.user_id),
                    )
                    for transition in transitions
                ]
                for acknowledged in sent:
                    await acknowledged
            except KafkaError as exc:
                log.warning("shard %d: %d changes of state are published later: %s", partition, len(transitions), exc)
                return
            await self._shards.call(partition, lambda shard: shard.ageing.mark_published(len(transitions)))
            for transition in transitions:
                self._metrics.transitions.labels(transition.from_, transition.to).inc()
            deprecated += [one.memory_id for one in transitions if one.to == State.DEPRECATED]
        if deprecated:
            log.info("shard %d: %d memories became deprecated", partition, len(deprecated))
            log.debug("shard %d: deprecated: %s", partition, ", ".join(map(str, deprecated)))

    async def save_indexes(self) -> None:
        """Write the FAISS files that changed, so that the next start has less to rebuild."""
        if self._shards.ready:
            for partition in self._shards.partitions():
                with contextlib.suppress(ShardNotHere):  # the partition has moved, and was saved before
                    await self._shards.call(partition, Shard.save)

    async def fill_rows(self) -> None:
        """Prepare new memories for search. A search before that has to prepare the memories of its user itself."""
        if self._shards.ready:
            for partition in self._shards.partitions():
                with contextlib.suppress(ShardNotHere):
                    for _ in range(SLICES):
                        if not await self._shards.call(partition, lambda shard: shard.rows.fill(SLICE)):
                            break
