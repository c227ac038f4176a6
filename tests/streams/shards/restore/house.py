"""Shards of one partition on disks of their own, a log that is a list, and a store of checkpoints in a folder."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from schemas.events import LongTermEvent, Promotion
from schemas.settings import LifecycleSettings, LongTermSettings
from streams.shards.owned import OwnedShards
from streams.shards.restore.checkpoint_job import CheckpointJob
from streams.shards.restore.restoring import LogBounds, Restoring
from streams.telemetry.metrics import Metrics
from streams.worker.wiring.window_copies import WindowCopies
from tables.checkpoints.checkpoints import Checkpoints
from tables.memories.shard import Shard
from tables.windows.window_stores import WindowStores
from tests.streams.shards.test_models import DIMENSION, Toy, embedding_of
from tests.support.making import START, axis, promotion
from tests.support.waiting import until

PARTITION = 3


class Log:
    """The log of the partition: promotions, one of a user each, and what is in its place."""

    def __init__(self) -> None:
        self.events: list[LongTermEvent] = []
        self.start, self.topic_id = 0, "a-topic"

    def say(self, count: int) -> None:
        self.events += [
            promotion(str(n), f"m{n}", user=f"u{n}") for n in range(len(self.events), len(self.events) + count)
        ]

    async def bounds(self, partition: int) -> LogBounds:
        return LogBounds(self.start, len(self.events), self.topic_id)


class Worker:
    """What of a worker has to do with one partition."""

    def __init__(
        self,
        disk: Path,
        store: Checkpoints,
        log: Log,
        *,
        model: str = "toy",
        partitions: int = 8,
        generation: int = 1,
        accept_loss: bool = False,
        windows: WindowStores | None = None,
    ) -> None:
        self.disk, self.log, self.generation, self.member = disk, log, generation, True
        self.metrics, self.faults, self.read_again = Metrics(), list[BaseException](), 0
        self.shards = OwnedShards(
            disk / "shards",
            LongTermSettings(near_copy=1.0),
            LifecycleSettings(),
            embedding_of(Toy(model, 0)),
            lambda exc, where: self.faults.append(exc),
        )
        self.job = CheckpointJob(
            store=store,
            shards=self.shards,
            metrics=self.metrics,
            partitions=partitions,
            topic_id=lambda: log.topic_id,
            generation=lambda: self.generation,
            is_member=self.is_member,
            caught_up=lambda partition: True,
            beside=None if windows is None else WindowCopies(windows, disk / "copied"),
        )
        self.restoring = Restoring(
            store=store,
            folder=disk / "restoring",
            partitions=partitions,
            bounds=log.bounds,
            is_member=self.is_member,
            metrics=self.metrics,
            accept_loss=accept_loss,
            patience=0.0,
        )
        self.shards.bring, self.shards.leaving = self.restoring.bring, self.job.leaving

    async def is_member(self) -> bool:
        return self.member

    async def open(self) -> None:
        """Own the partition, and read what its shard lacks of the log."""
        self.own()
        await until(lambda: self.shards.ready or self.faults)
        if not self.faults:
            await self.catch_up()

    def own(self) -> None:
        self.shards.own(frozenset({PARTITION}))
        self.job.own({PARTITION})

    async def catch_up(self) -> None:
        position = await self.shards.position(PARTITION)
        left = self.log.events[max(position, self.log.start) :]
        self.read_again += len(left)
        for n, event in enumerate(left, len(self.log.events) - len(left)):
            vectors = {event.event_id: axis(n % DIMENSION, DIMENSION)} if isinstance(event, Promotion) else {}
            await self.shards.call(PARTITION, Shard.apply, [event], vectors, START, n + 1)

    async def users(self) -> list[str]:
        """Whose memories the shard holds, each as often as it holds one."""
        return await self.shards.call(PARTITION, _users)

    async def close(self) -> None:
        """It takes no last checkpoint."""
        self.job._closing = True
        await self.shards.close()
        await self.shards.models.stop()

    def restores(self) -> dict[str, float]:
        """How often a state came from where."""
        return {
            sample.labels["source"]: sample.value
            for family in self.metrics.restores.collect()
            for sample in family.samples
            if sample.name.endswith("_total")
        }


def _users(shard: Shard) -> list[str]:
    return sorted(user for (user,) in shard._catalog._db.execute("SELECT user_id FROM memories").fetchall())


def everybody(log: Log) -> list[str]:
    """What a worker holds that has read all of the log, and forgotten nobody."""
    return sorted(event.user_id for event in log.events)


@asynccontextmanager
async def at_work(worker: Worker) -> AsyncIterator[Worker]:
    try:
        await worker.open()
        yield worker
    finally:
        await worker.close()
