"""Memories age: on a timer each shard's states are recomputed, and changes go to the transitions topic."""

from __future__ import annotations

from schemas.memories import State
from schemas.settings import LifecycleSettings
from schemas.topics import Topics, key_of
from streams.clock import Clock
from streams.hotpath import Outbox
from streams.metrics import Metrics
from streams.shards import OwnedShards
from tables.shard import Shard


class LifecycleAgent:
    """Recomputes, publishes, and keeps the gauges of states."""

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

    async def recompute(self) -> None:
        """Every shard once, as of the clock's now."""
        now = self._clock.now()
        if not now or not self._shards.ready:
            return
        totals = dict.fromkeys(State, 0)
        for partition in self._shards.partitions():
            await self._shards.call(partition, Shard.recompute, now, self._lifecycle)
            await self._publish(partition)
            counts = await self._shards.call(partition, Shard.state_counts, now, self._lifecycle)
            for state, count in counts.items():
                totals[state] += count
        for state, count in totals.items():
            self._metrics.states.labels(state.value).set(count)

    async def _publish(self, partition: int) -> None:
        """Transitions reach the topic at least once: they are marked after the broker has them."""
        while transitions := await self._shards.call(partition, Shard.unpublished):
            sent = [
                await self._outbox.send(
                    self._topics.transitions,
                    transition.model_dump_json(by_alias=True).encode(),
                    key=key_of(transition.user_id),
                )
                for transition in transitions
            ]
            for acknowledged in sent:
                await acknowledged
            await self._shards.call(partition, Shard.mark_published, len(transitions))

    async def save_indexes(self) -> None:
        """Write the FAISS files that changed, so that the next start has less to rebuild."""
        if self._shards.ready:
            for partition in self._shards.partitions():
                await self._shards.call(partition, Shard.save)
