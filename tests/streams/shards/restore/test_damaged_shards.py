"""A shard whose catalog is damaged comes back from a checkpoint and the log; without one, a person decides."""

from __future__ import annotations

import asyncio
import shlex
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from schemas.errors import DamagedShard, ShardError, SiltstoneError
from schemas.events import ForgetUser
from streams.shards.restore.warm_copies import WarmJob
from tables.checkpoints.checkpoints import Checkpoints
from tables.checkpoints.warm import WarmCopies
from tables.memories.catalog.reembedding import VectorModel
from tables.memories.shard import Shard
from tests.streams.shards.restore.house import PARTITION, Log, Worker, at_work, everybody
from tests.streams.shards.test_models import DIMENSION
from tests.support.making import START
from tests.tables.checkpoints.made import noise
from tests.tables.commands import event


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "disk" / "shards" / str(PARTITION)


async def left(disk: Path, store: Checkpoints, log: Log, *, checkpoint: bool = True) -> None:
    """A disk with all of the log by a worker that has ended, and a checkpoint of it."""
    async with at_work(Worker(disk, store, log)) as worker:
        if checkpoint:
            assert (await worker.job.take(PARTITION)).outcome == "taken"


async def fault_of(worker: Worker, kind: type[SiltstoneError] = DamagedShard) -> str:
    async with at_work(worker):
        (fault,) = worker.faults
        assert isinstance(fault, kind)
        return str(fault)


def emptied(catalog: Path) -> None:
    catalog.write_bytes(b"")


def garbage(catalog: Path) -> None:
    catalog.write_bytes(noise(catalog.stat().st_size))


def cut(catalog: Path) -> None:
    catalog.write_bytes(catalog.read_bytes()[: catalog.stat().st_size // 2])


def flipped(catalog: Path) -> None:
    """A byte of the first block: DuckDB's checksum tells it."""
    content = bytearray(catalog.read_bytes())
    content[13_000] ^= 1
    catalog.write_bytes(content)


def blocks_of_tables(catalog: Path) -> None:
    """Those after the first: the position can be read, and the memories cannot."""
    content = bytearray(catalog.read_bytes())
    block, head = 256 * 1024, 12 * 1024
    for number in (1, 2):
        content[head + number * block : head + (number + 1) * block] = bytes(block)
    catalog.write_bytes(content)


@pytest.mark.parametrize("damage", [emptied, garbage, cut, flipped, blocks_of_tables])
@pytest.mark.parametrize("short", [False, True], ids=["whole-log", "short-log"])
async def test_the_newest_checkpoint_takes_its_place_and_it_is_kept(
    tmp_path: Path,
    store: Checkpoints,
    log: Log,
    place: Path,
    damage: Callable[[Path], None],
    short: bool,
    caplog: pytest.LogCaptureFixture,
) -> None:
    await left(tmp_path / "disk", store, log)
    log.say(2)
    await left(tmp_path / "disk", store, log, checkpoint=False)
    log.start = 5 if short else 0
    damage(place / "catalog.duckdb")
    damaged = (place / "catalog.duckdb").read_bytes()
    async with at_work(Worker(tmp_path / "disk", store, log)) as worker:
        assert (worker.faults, worker.read_again, worker.restores()["checkpoint"]) == ([], 2, 1)
        assert await worker.users() == everybody(log)
    kept = place.with_name(f"{PARTITION}.damaged")
    assert (kept / "catalog.duckdb").read_bytes() == damaged
    assert f"shard {PARTITION}: {place} is damaged" in caplog.text
    assert f"the damaged files are kept in {kept}" in caplog.text


async def test_a_warm_copy_takes_its_place(tmp_path: Path, store: Checkpoints, log: Log, place: Path) -> None:
    await left(tmp_path / "disk", store, log)
    worker = Worker(tmp_path / "disk", store, log)
    warm = WarmJob(
        copies=WarmCopies(tmp_path / "disk" / "warm", store),
        partitions=8,
        ours=list,
        topic_id=lambda: log.topic_id,
        is_member=worker.is_member,
        metrics=worker.metrics,
    )
    warm.told(frozenset({PARTITION}))
    await warm.tick()
    garbage(place / "catalog.duckdb")
    assert await warm.bring(PARTITION, place, [VectorModel("toy", DIMENSION)], damaged=True)
    assert place.with_name(f"{PARTITION}.damaged").exists()
    async with at_work(worker):
        assert (worker.faults, worker.read_again, worker.restores()) == ([], 0, {"disk": 1})
        assert await worker.users() == everybody(log)


async def test_the_kept_files_go_when_the_shard_is_erased(
    tmp_path: Path, store: Checkpoints, log: Log, place: Path
) -> None:
    """They have the words of a forgotten user, too."""
    await left(tmp_path / "disk", store, log)
    garbage(place / "catalog.duckdb")
    kept = place.with_name(f"{PARTITION}.damaged")
    async with at_work(Worker(tmp_path / "disk", store, log)) as worker:
        assert kept.exists()
        log.events.append(event(ForgetUser, "u2", START + 1))
        await worker.catch_up()
        await worker.shards.call(PARTITION, Shard.save)
        await worker.shards.call(PARTITION, Shard.save)
        assert not kept.exists()


async def test_a_second_damage_takes_the_place_of_the_first(
    tmp_path: Path, store: Checkpoints, log: Log, place: Path
) -> None:
    await left(tmp_path / "disk", store, log)
    for damaged in (b"first", b"second"):
        (place / "catalog.duckdb").write_bytes(damaged)
        async with at_work(Worker(tmp_path / "disk", store, log)) as worker:
            assert worker.restores()["checkpoint"] == 1
        assert (place.with_name(f"{PARTITION}.damaged") / "catalog.duckdb").read_bytes() == damaged


async def test_without_a_checkpoint_the_command_that_is_named_works(
    tmp_path: Path, store: Checkpoints, log: Log, place: Path
) -> None:
    await left(tmp_path / "disk", store, log, checkpoint=False)
    garbage(place / "catalog.duckdb")
    said = await fault_of(Worker(tmp_path / "disk", store, log))
    command = said.split("`")[1]
    assert "\n" not in said
    assert command == f"mv {place} {place}.damaged"
    await asyncio.to_thread(subprocess.run, shlex.split(command), check=True)
    async with at_work(Worker(tmp_path / "disk", store, log)) as worker:
        assert (worker.read_again, worker.restores()) == (5, {"log": 1})
        assert await worker.users() == everybody(log)


async def test_without_a_store_of_checkpoints_the_worker_says_the_same(
    tmp_path: Path, store: Checkpoints, log: Log, place: Path
) -> None:
    await left(tmp_path / "disk", store, log)
    garbage(place / "catalog.duckdb")
    worker = Worker(tmp_path / "disk", store, log)
    worker.shards.bring = None
    assert f"`mv {place} {place}.damaged`" in await fault_of(worker)


async def test_a_checkpoint_that_the_log_does_not_reach_takes_no_place(
    tmp_path: Path, store: Checkpoints, log: Log, place: Path
) -> None:
    await left(tmp_path / "disk", store, log)
    log.say(4)
    await left(tmp_path / "disk", store, log, checkpoint=False)
    log.start = 7
    garbage(place / "catalog.duckdb")
    damaged = (place / "catalog.duckdb").read_bytes()
    assert "the log begins at offset 7" in await fault_of(Worker(tmp_path / "disk", store, log), ShardError)
    assert (place / "catalog.duckdb").read_bytes() == damaged


@pytest.mark.parametrize("made", ["an empty file", "its heads in part", "a database without tables"])
async def test_a_shard_whose_making_was_cut_off_is_none(
    tmp_path: Path, store: Checkpoints, log: Log, place: Path, made: str
) -> None:
    """A worker was killed at its first opening: it begins anew, and from a checkpoint where the log is short."""
    catalog = place / "catalog.duckdb"

    def begun() -> None:
        shutil.rmtree(tmp_path / "disk", ignore_errors=True)
        place.mkdir(parents=True)
        duckdb.connect(catalog).close()
        if made != "a database without tables":
            catalog.write_bytes(catalog.read_bytes()[: 0 if made == "an empty file" else 4096])

    begun()
    async with at_work(Worker(tmp_path / "disk", store, log)) as worker:
        assert (worker.faults, worker.read_again) == ([], 5)
    await left(tmp_path / "another", store, log)
    log.start = 3
    begun()
    async with at_work(Worker(tmp_path / "disk", store, log)) as worker:
        assert (worker.faults, worker.restores()) == ([], {"checkpoint": 1})
        assert await worker.users() == everybody(log)
