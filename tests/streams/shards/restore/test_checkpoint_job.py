"""Checkpoints are taken of what changed; what goes wrong with one stops nothing else."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from schemas.errors import StoreFull, StoreRefused, StoreUnavailable
from schemas.events import ForgetUser
from streams.shards.restore import checkpoint_job as job_module
from streams.telemetry.metrics import labelled
from tables.checkpoints.checkpoints import Checkpoints, Taken
from tables.checkpoints.snapshot import Snapshot
from tables.memories.shard import Shard
from tests.streams.shards.restore.house import PARTITION, Log, Worker, at_work, everybody
from tests.support.making import START
from tests.support.waiting import until
from tests.tables.commands import event

Take = Callable[[Snapshot, Callable[[], bool]], Taken | None]


def taken_otherwise(store: Checkpoints, monkeypatch: pytest.MonkeyPatch, how: Callable[..., Any]) -> None:
    """`how(take, snapshot, stop)` in the place of `take`."""
    take = store.take
    monkeypatch.setattr(store, "take", lambda snapshot, stop: how(take, snapshot, stop))


async def test_one_is_taken_of_what_changed_alone(tmp_path: Path, store: Checkpoints, log: Log) -> None:
    """Also after a restart: the newest checkpoint says how far it is."""
    async with at_work(Worker(tmp_path / "disk", store, log)) as worker:
        first = await worker.job.take(PARTITION)
        assert (first.outcome, (await worker.job.take(PARTITION)).outcome) == ("taken", "unchanged")
        log.say(1)
        await worker.catch_up()
        second = await worker.job.take(PARTITION)
        assert second.taken is not None
        assert second.taken.generation == 2
        assert worker.metrics.checkpoint_bytes._value.get() > second.taken.uploaded
    async with at_work(Worker(tmp_path / "disk", store, log, generation=2)) as worker:
        assert (await worker.job.take(PARTITION)).outcome == "unchanged"
    facts = [(one.facts.epoch, one.facts.positions["long-term"].offset) for one in store.generations(PARTITION)]
    assert facts == [(1, 6), (1, 5)]


async def test_what_is_forgotten_meanwhile_has_the_checkpoint_started_over(
    tmp_path: Path, store: Checkpoints, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shard works on while one is taken."""
    reading, go_on = threading.Event(), threading.Event()

    def slowly(take: Take, snapshot: Snapshot, stop: Callable[[], bool]) -> Taken | None:
        reading.set()
        assert go_on.wait(30)
        return take(snapshot, stop)

    taken_otherwise(store, monkeypatch, slowly)
    async with at_work(Worker(tmp_path / "disk", store, log)) as worker:
        taking = asyncio.ensure_future(worker.job.take(PARTITION))
        await until(reading.is_set)
        log.events.append(event(ForgetUser, "u2", START + 1))
        await worker.catch_up()
        assert await worker.users() == ["u0", "u1", "u3", "u4"]
        go_on.set()
        assert (await taking).outcome == "given_up"
        assert store.numbers(PARTITION) == []
        assert (await worker.job.take(PARTITION)).outcome == "taken"


@pytest.mark.parametrize(
    ("fault", "reason"),
    [(StoreUnavailable, "store_away"), (StoreRefused, "store_refused"), (StoreFull, "store_full")],
    ids=["away", "refusing", "full"],
)
async def test_a_store_that_takes_nothing_is_a_warning_and_asked_again(
    tmp_path: Path,
    store: Checkpoints,
    log: Log,
    monkeypatch: pytest.MonkeyPatch,
    fault: type[StoreUnavailable],
    reason: str,
) -> None:
    """With pauses; the shard takes what comes meanwhile."""
    asked, amiss = [0], [True]

    def refused(take: Take, snapshot: Snapshot, stop: Callable[[], bool]) -> Taken | None:
        asked[0] += 1
        if amiss[0]:
            raise fault(store.url, "it says so")
        return take(snapshot, stop)

    taken_otherwise(store, monkeypatch, refused)
    async with at_work(Worker(tmp_path / "disk", store, log)) as worker:
        await worker.job.tick()
        await worker.job.tick()
        assert asked == [1]
        (warning,) = worker.job.warnings()
        assert "it says so" in warning
        log.say(3)
        await worker.catch_up()
        amiss[0] = False
        worker.job._not_before = 0.0
        await worker.job.tick()
        assert worker.job.warnings() == []
        assert labelled(worker.metrics.checkpoints) == {(reason,): 1, ("taken",): 1}
        assert await worker.users() == everybody(log)


@pytest.mark.slow
async def test_of_two_that_believe_to_own_a_partition_the_former_is_fenced(
    tmp_path: Path, store: Checkpoints, log: Log
) -> None:
    """Until it is reassigned. What it has is a state of the log, and does not harm."""
    async with (
        at_work(Worker(tmp_path / "1", store, log, generation=4)) as former,
        at_work(Worker(tmp_path / "2", store, log, generation=5)) as successor,
    ):
        former.member = False
        assert (await former.job.take(PARTITION)).outcome == "taken"
        log.say(1)
        await successor.catch_up()
        assert (await successor.job.take(PARTITION)).outcome == "taken"
        await former.catch_up()
        log.say(1)
        await former.catch_up()
        assert (await former.job.take(PARTITION)).outcome == "fenced"
        assert (await former.job.take(PARTITION)).outcome == "fenced"
        assert labelled(former.metrics.checkpoints) == {("taken",): 1, ("fenced",): 1}
        newest = store.newest(PARTITION)
        assert newest is not None
        assert newest.facts.epoch == 5
        former.generation, former.member = 6, True
        former.own()
        assert (await former.job.take(PARTITION)).outcome == "taken"
        assert former.job.warnings() == []


async def test_a_group_whose_generations_start_over_is_not_fenced_by_its_past(
    tmp_path: Path, store: Checkpoints, log: Log
) -> None:
    async with at_work(Worker(tmp_path / "1", store, log, generation=40)) as worker:
        await worker.job.take(PARTITION)
    log.say(1)
    async with at_work(Worker(tmp_path / "1", store, log, generation=2)) as worker:
        assert (await worker.job.take(PARTITION)).outcome == "taken"
    assert [one.facts.epoch for one in store.generations(PARTITION)] == [42, 40]


async def test_a_partition_that_leaves_is_kept_and_a_worker_that_stops_keeps_all(
    tmp_path: Path, store: Checkpoints, log: Log
) -> None:
    worker = Worker(tmp_path / "1", store, log)
    await worker.open()
    worker.shards.own(frozenset())
    await until(lambda: store.numbers(PARTITION) == [1])
    worker.own()
    await until(lambda: worker.shards.ready)
    log.say(1)
    await worker.catch_up()
    await worker.job.last()
    assert store.numbers(PARTITION) == [2, 1]
    await worker.shards.close()
    await worker.shards.models.stop()
    assert store.numbers(PARTITION) == [2, 1]


async def test_a_slow_store_holds_nobody_up_for_long(
    tmp_path: Path, store: Checkpoints, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A partition that leaves, and a worker that stops, go without a last checkpoint."""
    go_on = threading.Event()

    def slowly(take: Take, snapshot: Snapshot, stop: Callable[[], bool]) -> Taken | None:
        go_on.wait(30)
        return take(snapshot, stop)

    taken_otherwise(store, monkeypatch, slowly)
    monkeypatch.setattr(job_module, "LEAVING_SECONDS", 0.05)
    monkeypatch.setattr(job_module, "STOPPING_SECONDS", 0.05)
    worker = Worker(tmp_path / "1", store, log)
    await worker.open()
    await worker.job.last()
    worker.job._closing = False
    await worker.shards.close()
    go_on.set()
    await worker.shards.models.stop()
    assert store.numbers(PARTITION) == []
    left = Shard(PARTITION, tmp_path / "1" / "shards" / str(PARTITION), "toy", 16, *settings())
    assert left.count() == 5
    left.close()


def settings() -> tuple[Any, Any]:
    from schemas.settings import LifecycleSettings, LongTermSettings

    return LongTermSettings(), LifecycleSettings()
