"""Builds the jobs that take checkpoints and restore partitions, if the settings name a checkpoint store."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from schemas.errors import DamagedShard
from streams.kafka.broker_link import BrokerLink
from streams.kafka.clients.log_reader import bounds_of
from streams.memory.agent import LongTermAgent
from streams.runtime.timers import Timer, Timers
from streams.shards.owned import OwnedShards
from streams.shards.restore.checkpoint_job import EXPIRE_SECONDS, CheckpointJob
from streams.shards.restore.restoring import LogBounds, Restoring
from streams.shards.restore.restoring_windows import RestoringWindows
from streams.shards.restore.warm_copies import LOOK_SECONDS, WarmJob
from streams.worker.wiring.context import WorkerContext
from streams.worker.wiring.window_copies import WindowCopies
from tables.checkpoints.checkpoints import Checkpoints
from tables.checkpoints.drafts import drop_left
from tables.checkpoints.replacing import take_up_all
from tables.checkpoints.warm import WarmCopies
from tables.memories.catalog.reembedding import VectorModel


class Checkpointing:
    """The jobs that take checkpoints and restore partitions. They learn of Faust's partition assignments.

    Raises `StoreUnavailable` if no client of the store can be made.
    """

    def __init__(
        self, context: WorkerContext, shards: OwnedShards, long_term: LongTermAgent, broker: BrokerLink
    ) -> None:
        settings, data = context.settings.checkpoints, context.settings.data_dir
        self._seconds, self._context, self._broker = settings.seconds, context, broker
        self.job: CheckpointJob | None = None
        self.restoring: Restoring | None = None
        self.warm: WarmJob | None = None
        copies, restoring = data / "warm", data / "restoring"
        # Remove the files that a killed worker left, because they may contain data that was forgotten later. Put back
        # the shards that the worker had set aside.
        shutil.rmtree(data / "copied", ignore_errors=True)
        drop_left(restoring)
        take_up_all(data / "shards")
        if not settings.url:
            shutil.rmtree(copies, ignore_errors=True)  # without a store, forget commands would not reach warm copies
            return
        store = Checkpoints(settings.url, keep=settings.keep, erase_within=settings.erase_within)
        self.job = CheckpointJob(
            store=store,
            shards=shards,
            metrics=context.metrics,
            partitions=context.partitions,
            topic_id=self._topic_id,
            generation=lambda: context.hot.generation,
            is_member=context.hot.is_member,
            beside=WindowCopies(context.stores, data / "copied"),
            caught_up=lambda partition: partition not in long_term.catching_up,
            expire_seconds=min(EXPIRE_SECONDS, settings.erase_seconds),
        )
        self.restoring = Restoring(
            store=store,
            folder=restoring,
            partitions=context.partitions,
            bounds=self._bounds,
            is_member=context.hot.is_member,
            accept_loss=settings.accept_loss,
            metrics=context.metrics,
            begins=lambda partition: shards.coming_back.begins(partition, "memories", "restoring"),
        )
        self._windows = RestoringWindows(
            store=store,
            folder=restoring,
            partitions=context.partitions,
            known_away=self.job.store_is_away,
        )
        context.faust.on_partitions_assigned.connect(self._assigned)
        context.hot.bring_windows = self._bring_windows
        self.warm = WarmJob(
            copies=WarmCopies(copies, store),
            partitions=context.partitions,
            ours=shards.partitions,
            topic_id=self._topic_id,
            is_member=context.hot.is_member,
            metrics=context.metrics,
        )
        state, on_disk, warm = context.hot.state, context.hot.state.held, self.warm.held
        state.copies, state.on_duties = settings.warm, self.warm.told
        state.held = lambda: _newest(on_disk(), warm())
        shards.bring, shards.leaving = self._bring, self.job.leaving

    async def _bring(
        self, partition: int, folder: Path, models: Sequence[VectorModel], damaged: DamagedShard | None
    ) -> None:
        assert self.warm is not None
        assert self.restoring is not None
        if await self.warm.bring(partition, folder, models, damaged=damaged is not None):
            damaged = None
        await self.restoring.bring(partition, folder, models, damaged)

    async def _bounds(self, partition: int) -> LogBounds:
        context = self._context
        start, end = await bounds_of(context.settings.kafka, context.topics.long_term, partition)
        return LogBounds(start, end, self._topic_id())

    async def _bring_windows(self, partitions: Sequence[int]) -> None:
        folder = self._context.stores.folder
        await self._windows.bring({partition: folder / str(partition) for partition in partitions})

    def _topic_id(self) -> str:
        return self._broker.topic_id(self._context.topics.long_term)

    async def _assigned(self, _app: Any, /, *arguments: Any, signal: Any, **_: Any) -> None:
        (assigned,) = arguments
        assert self.job is not None
        self.job.own({tp.partition for tp in assigned if tp.topic == self._context.topics.long_term})

    def schedule(self, timers: Timers) -> None:
        if self.job is not None:
            timers.every(Timer.CHECKPOINTS, self._seconds, self.job.tick)
        if self.warm is not None:
            timers.every(Timer.WARM_COPIES, min(self._seconds, LOOK_SECONDS), self.warm.tick)

    async def last(self) -> None:
        """Take the last checkpoints, before the worker stops."""
        if self.job is not None:
            await self.job.last()

    def warnings(self) -> list[str]:
        """Return warnings about problems with checkpoints that do not stop the worker."""
        return [] if self.job is None else self.job.warnings()

    def waiting(self) -> list[str]:
        """Return the reasons why shards are not open yet."""
        return [] if self.restoring is None else self.restoring.waiting()


def _newest(one: Mapping[int, int], other: Mapping[int, int]) -> dict[int, int]:
    """Return the higher of the two offsets of each partition."""
    return {partition: max(one.get(partition, 0), other.get(partition, 0)) for partition in one.keys() | other.keys()}
