"""Jobs that run beside the agents, on timers or while there is no backlog."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import AsyncExitStack
from functools import partial
from typing import Final, Self

from schemas.errors import DataDirError
from schemas.memories import Memory
from schemas.times import now_ms
from streams.kafka.clients.log_reader import end_of
from streams.memory.agent import decode
from streams.memory.analytics import AnalyticsJob
from streams.memory.cleanup import CleanupJob
from streams.memory.expiry import ExpiryJob
from streams.memory.lifecycle import LifecycleJob
from streams.memory.reembedding import Reembedder
from streams.memory.refining import RefiningJob
from streams.memory.retention import RetentionJob
from streams.models.refiner import ModelRefiner
from streams.replay.interrupted import drop_interrupted
from streams.runtime.timers import Timer, Timers
from streams.shards.restore.local_partitions import NOTED_SECONDS, LocalPartitions
from streams.summaries.agent import SummariesAgent
from streams.worker.former_partitions import FormerShards, FormerWindows
from streams.worker.wiring.chats import RatingChat
from streams.worker.wiring.context import WorkerContext
from streams.worker.wiring.storage import Storage
from tables.unused_memory import give_back

log = logging.getLogger(__name__)

#: Seconds between two runs that fill in the search rows of new memories.
FILL_SECONDS: Final = 1.0
#: Seconds between two attempts to remove the remaining files of forgotten users, and interrupted replays.
SWEEP_SECONDS: Final = 60.0
#: Seconds between two runs that apply forget commands to the files of other workers' partitions.
FORMER_SECONDS: Final = 300.0
#: Seconds between two runs that return unused memory to the system.
GIVE_BACK_SECONDS: Final = 60.0
#: The maximum number of seconds between two runs that erase forgotten rows of windows from the disk.
ERASE_SECONDS: Final = 60.0
#: Seconds between two runs in which the shards drop data that is too old.
RETENTION_SECONDS: Final = 600.0


class Jobs:
    """The jobs: ageing, cleanup, retention, refining, the analysts' copy, re-embedding, and former partitions."""

    def __init__(
        self, context: WorkerContext, storage: Storage, summaries: SummariesAgent, rater: RatingChat | None
    ) -> None:
        settings, shards = context.settings, storage.shards
        event_log, metrics, clock = context.event_log, context.metrics, context.clock
        self._context, self._summaries, self._newest_forgetting = context, summaries, 0
        self.reembedder = Reembedder(shards, context.gate, storage.embedder)
        self.refining = (
            None
            if rater is None
            else RefiningJob(
                refiner=ModelRefiner(rater.chat),
                concurrency=max(
                    1, rater.settings.concurrency // 4
                ),  # most of the parallel requests are left for ratings, because commits wait for ratings
                shards=shards,
                event_log=event_log,
                metrics=metrics,
                clock=clock,
                settings=settings.long_term,
                backlog=context.long_term_backlog,
            )
        )
        self.analytics = AnalyticsJob(
            folder=settings.data_dir / "analytics",
            shards=shards,
            metrics=metrics,
            clock=clock,
            gate=context.gate,
            lifecycle=settings.lifecycle,
            enabled=settings.analytics.enabled,
            memory=storage.copies,
        )
        self.former = FormerShards(
            data_dir=settings.data_dir,
            shards=shards,
            summaries=summaries,
            analytics=self.analytics,
            inbox=context.inbox(decode),
            end=partial(end_of, settings.kafka, context.topics.long_term),
            read=context.read_long_term,
        )
        self.former_windows = FormerWindows(lambda: context.stores, shards.partitions)
        self.held = LocalPartitions(settings.data_dir / "shards", shards)
        context.hot.state.held, context.hot.state.name = self.held.held, settings.kafka.instance_id
        self.retention = RetentionJob(
            shards=shards, settings=settings.long_term.retention, clock=clock, read=context.read_long_term
        )
        self.lifecycle = LifecycleJob(
            shards=shards,
            outbox=context.outbox,
            metrics=metrics,
            clock=clock,
            topics=context.topics,
            lifecycle=settings.lifecycle,
        )
        self.cleanup = CleanupJob(
            shards=shards,
            event_log=event_log,
            metrics=metrics,
            partitions=context.partitions,
            lifecycle=settings.lifecycle,
        )

        self.expiry = ExpiryJob(shards=shards, event_log=event_log)

    async def __aenter__(self) -> Self:
        if self.refining is not None:
            self.refining.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        async with AsyncExitStack() as parts:
            parts.push_async_callback(asyncio.to_thread, self.analytics.close)
            parts.push_async_callback(self.reembedder.close)
            if self.refining is not None:
                parts.push_async_callback(self.refining.stop)

    def schedule(self, timers: Timers) -> None:
        """Start a timer for each job."""
        settings = self._context.settings
        timers.every(Timer.AGING, settings.lifecycle.recompute_seconds, self._age)
        timers.every(Timer.SAVING, settings.long_term.save_seconds, self.lifecycle.save_indexes)
        timers.every(Timer.SEARCH_ROWS, FILL_SECONDS, self.lifecycle.fill_rows)
        timers.every(Timer.DAY_FILES, SWEEP_SECONDS, self._summaries.sweep)
        timers.every(Timer.REPLAYS, SWEEP_SECONDS, self._drop_replays)
        erasing = min(ERASE_SECONDS, settings.checkpoints.erase_seconds)
        timers.every(Timer.ERASING, erasing, self._erase_rows)
        timers.every(Timer.FORMER_SHARDS, FORMER_SECONDS, self.former.tick)
        timers.every(Timer.FORMER_WINDOWS, FORMER_SECONDS, self.former_windows.tick)
        timers.every(Timer.HELD_PARTITIONS, NOTED_SECONDS, self.held.tick)
        timers.every(Timer.RETENTION, RETENTION_SECONDS, self.retention.tick)
        timers.every(Timer.FREE_MEMORY, GIVE_BACK_SECONDS, partial(asyncio.to_thread, give_back))
        timers.every(Timer.ANALYTICS, settings.analytics.seconds, self.analytics.tick)

    def born(self, partition: int, memories: Sequence[Memory]) -> None:
        """Pass new memories to the refining job."""
        if self.refining is not None:
            self.refining.born(partition, memories)

    def forgot(self) -> None:
        """Record that data was forgotten. It is then also removed from the analysts' copy and interrupted replays."""
        self.analytics.forgot()
        self._newest_forgetting = now_ms()

    async def _age(self) -> None:
        """Recompute the states of memories; then request the removal and archiving of memories.

        While the clock or a shard is not ready, nothing is done. Removal and archiving use a time that is certainly
        not in the future, even if the clock is ahead.
        """
        if now := await self.lifecycle.recompute():
            # If the clock has moved since, a memory that is still active in its row could be archived.
            passed = min(now, self._context.clock.passed())
            await self.expiry.tick(passed)
            await self.cleanup.tick(passed)

    async def _drop_replays(self) -> None:
        """Remove interrupted replays that began before the newest forget command, which may contain forgotten texts.

        Each tick repeats this, because a replay that is running now may be interrupted later.
        """
        if self._newest_forgetting:
            await asyncio.to_thread(drop_interrupted, self._context.settings.data_dir, self._newest_forgetting)

    async def _erase_rows(self) -> None:
        """Erase forgotten rows of windows from the disk. If the disk is full, the next tick tries again."""
        stores = self._context.stores
        for partition in stores.partitions():
            try:
                await asyncio.to_thread(stores.erase, partition)
            except DataDirError as exc:
                log.warning("forgotten data is not erased yet: %s", exc)
