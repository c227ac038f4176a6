"""A partition comes back from the nearest state that is sound and fits, and from the log."""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from schemas.errors import DataDirError, ShardError, SiltstoneError, StoreUnavailable
from schemas.events import ForgetUser
from streams.shards.restore import restoring
from tables.checkpoints import manifest as manifests
from tables.checkpoints import restoring as checkpoint_restoring
from tables.checkpoints.checkpoints import Checkpoints
from tests.streams.shards.restore.house import PARTITION, Log, Worker, at_work, everybody
from tests.support.making import START
from tests.support.waiting import until
from tests.tables.checkpoints.made import content
from tests.tables.commands import event


async def generations(tmp_path: Path, store: Checkpoints, log: Log, count: int) -> None:
    """So many checkpoints by a worker that is gone, with one more memory in each; its disk is lost."""
    async with at_work(Worker(tmp_path / "lost", store, log)) as worker:
        for n in range(count):
            if n:
                log.say(1)
                await worker.catch_up()
            assert (await worker.job.take(PARTITION)).outcome == "taken"
    shutil.rmtree(tmp_path / "lost")


async def left(disk: Path, store: Checkpoints, log: Log) -> None:
    """A disk with all of the log, by a worker that has ended without a checkpoint."""
    async with at_work(Worker(disk, store, log)):
        pass


def damage_newest(tmp_path: Path, store: Checkpoints) -> None:
    """Flip a byte in each pack that no generation has but the newest."""
    newest, *before = store.generations(PARTITION)
    for name in {pack.name for pack in newest.packs} - {pack.name for one in before for pack in one.packs}:
        flip(tmp_path / "store" / str(PARTITION) / "packs" / name)


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


@pytest.mark.slow
async def test_an_empty_disk_is_filled_from_the_newest_and_the_tail(
    tmp_path: Path, store: Checkpoints, log: Log
) -> None:
    await generations(tmp_path, store, log, 2)
    log.say(2)
    async with at_work(Worker(tmp_path / "disk", store, log)) as worker:
        assert (worker.read_again, worker.restores()) == (2, {"checkpoint": 1})
        assert await worker.users() == everybody(log)
    assert list((tmp_path / "disk" / "restoring").iterdir()) == []
    async with at_work(Worker(tmp_path / "disk", store, log)) as worker:
        assert (worker.read_again, worker.restores()) == (0, {"disk": 1})


async def test_a_flipped_byte_is_found_and_the_generation_before_it_is_taken(
    tmp_path: Path, store: Checkpoints, log: Log
) -> None:
    await generations(tmp_path, store, log, 2)
    damage_newest(tmp_path, store)
    async with at_work(Worker(tmp_path / "disk", store, log)) as worker:
        assert worker.read_again == 1
        assert await worker.users() == everybody(log)


@pytest.mark.parametrize("change", [{"model": "another"}, {"partitions": 4}], ids=["model", "partitions"])
async def test_a_checkpoint_of_other_settings_is_passed_over(
    tmp_path: Path, store: Checkpoints, log: Log, change: dict[str, Any]
) -> None:
    """The log has it all."""
    await generations(tmp_path, store, log, 1)
    async with at_work(Worker(tmp_path / "disk", store, log, **change)) as worker:
        assert (worker.read_again, worker.restores()) == (5, {"log": 1})
        assert await worker.users() == everybody(log)


async def test_one_of_a_newer_version_is_passed_over_for_an_older_one(
    tmp_path: Path, store: Checkpoints, log: Log
) -> None:
    await generations(tmp_path, store, log, 2)
    newest, _ = store.generations(PARTITION)
    path = tmp_path / "store" / str(PARTITION) / "manifests" / f"{newest.generation:012d}"
    facts = msgspec.structs.replace(newest.facts, format=newest.facts.format + 1)
    path.write_bytes(manifests.encoded(msgspec.structs.replace(newest, facts=facts)))
    async with at_work(Worker(tmp_path / "disk", store, log)) as worker:
        assert (worker.read_again, worker.restores()) == (1, {"checkpoint": 1})


async def test_of_a_topic_that_was_made_anew_none_fits(tmp_path: Path, store: Checkpoints, log: Log) -> None:
    await generations(tmp_path, store, log, 1)
    log.topic_id = "another"
    async with at_work(Worker(tmp_path / "disk", store, log)) as worker:
        assert worker.restores() == {"log": 1}


async def test_where_the_log_has_not_all_and_no_checkpoint_fits_the_worker_says_what_to_do(
    tmp_path: Path, store: Checkpoints, log: Log
) -> None:
    await generations(tmp_path, store, log, 1)
    log.start = 3
    async with at_work(Worker(tmp_path / "disk", store, log, model="another")) as worker:
        (fault,) = worker.faults
        assert isinstance(fault, ShardError)
        assert "the log begins at offset 3" in str(fault)
        assert "siltstone checkpoint restore" in str(fault)


async def fault_of(worker: Worker, kind: type[SiltstoneError] = ShardError) -> str:
    """Why it does not open its shard."""
    async with at_work(worker):
        (fault,) = worker.faults
        assert isinstance(fault, kind)
        return str(fault)


async def test_damage_where_the_log_has_not_all_stops_the_worker(
    tmp_path: Path, store: Checkpoints, log: Log
) -> None:
    """The only checkpoint; and the newest of two, where the log does not reach the other."""
    await generations(tmp_path, store, log, 1)
    damage_newest(tmp_path, store)
    log.start = 3
    said = await fault_of(Worker(tmp_path / "disk", store, log))
    assert "the log begins at offset 3" in said
    assert "damaged: shard/" in said
    log.start = 0
    await generations(tmp_path, store, log, 2)
    damage_newest(tmp_path, store)
    log.start = 6
    assert "damaged: shard/" in await fault_of(Worker(tmp_path / "disk", store, log))
    log.start = 5
    async with at_work(Worker(tmp_path / "disk", store, log)) as worker:
        assert worker.restores() == {"checkpoint": 1}
        assert await worker.users() == everybody(log)


@pytest.mark.parametrize("wrong", ["its manifest is damaged", "it is too old", "the log ends before it"])
async def test_any_checkpoint_that_cannot_fill_what_the_log_lacks_stops_the_worker(
    tmp_path: Path, store: Checkpoints, log: Log, wrong: str
) -> None:
    """On an empty disk, and on one that the log does not reach."""
    await left(tmp_path / "disk", store, log)
    log.say(2)
    await generations(tmp_path, store, log, 1)
    log.start = 6
    if wrong == "its manifest is damaged":
        (manifest,) = (tmp_path / "store" / str(PARTITION) / "manifests").iterdir()
        flip(manifest)
    elif wrong == "it is too old":
        log.say(3)
        log.start = 9
    else:
        del log.events[6:]
    for disk in ("empty", "disk"):
        said = await fault_of(Worker(tmp_path / disk, store, log))
        assert f"the log begins at offset {log.start}" in said
        assert "checkpoints.accept_loss=true" in said


async def test_whoever_accepts_the_loss_goes_on_from_the_nearest_state(
    tmp_path: Path, store: Checkpoints, log: Log, caplog: pytest.LogCaptureFixture
) -> None:
    """It is told which offsets are lost."""
    await left(tmp_path / "disk", store, log)
    log.say(2)
    await generations(tmp_path, store, log, 1)
    log.say(3)
    log.start = 9
    async with at_work(Worker(tmp_path / "disk", store, log, accept_loss=True)) as worker:
        assert worker.restores() == {"checkpoint": 1}
        assert await worker.users() == sorted(f"u{n}" for n in range(10) if n not in (7, 8))
    assert "the records at offsets 7 to 8 of the log are lost" in caplog.text


async def test_without_any_checkpoint_there_is_nothing_to_wait_for(
    tmp_path: Path, store: Checkpoints, log: Log, caplog: pytest.LogCaptureFixture
) -> None:
    """A disk that the log does not reach is what there is: what is lost is told."""
    await left(tmp_path / "disk", store, log)
    log.say(4)
    log.start = 8
    async with at_work(Worker(tmp_path / "disk", store, log)) as worker:
        assert (worker.read_again, worker.restores()) == (1, {"disk": 1})
    assert "the records at offsets 5 to 7 of the log are lost" in caplog.text


@pytest.mark.slow
async def test_a_disk_that_is_far_behind_makes_place(
    tmp_path: Path, store: Checkpoints, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    await left(tmp_path / "disk", store, log)
    log.say(10)
    await generations(tmp_path, store, log, 1)
    monkeypatch.setattr(restoring, "FAR_BEHIND", 10)
    async with at_work(Worker(tmp_path / "disk", store, log)) as worker:
        assert worker.restores() == {"disk": 1}
    log.say(12)
    await generations(tmp_path, store, log, 1)
    async with at_work(Worker(tmp_path / "disk", store, log)) as worker:
        assert (worker.read_again, worker.restores()) == (0, {"checkpoint": 1})
        assert await worker.users() == everybody(log)


@pytest.mark.slow
async def test_a_disk_that_the_log_does_not_reach_makes_place(tmp_path: Path, store: Checkpoints, log: Log) -> None:
    await left(tmp_path / "disk", store, log)
    log.say(5)
    await generations(tmp_path, store, log, 1)
    log.start = 7
    async with at_work(Worker(tmp_path / "disk", store, log)) as worker:
        assert (worker.read_again, worker.restores()) == (0, {"checkpoint": 1})
        assert await worker.users() == everybody(log)


async def test_a_disk_with_no_room_for_what_is_restored_keeps_what_it_has(
    tmp_path: Path, store: Checkpoints, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker says so; the shard that was there is there, whole, and with room it makes place."""
    await left(tmp_path / "disk", store, log)
    log.say(5)
    await generations(tmp_path, store, log, 1)
    log.start = 7
    before = content(tmp_path / "disk" / "shards")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(checkpoint_restoring, "sync_all", full)
        said = await fault_of(Worker(tmp_path / "disk", store, log), DataDirError)
    assert "No space left on device" in said
    assert content(tmp_path / "disk" / "shards") == before
    assert list((tmp_path / "disk" / "restoring").iterdir()) == []
    async with at_work(Worker(tmp_path / "disk", store, log)) as worker:
        assert (worker.read_again, worker.restores()) == (0, {"checkpoint": 1})
        assert await worker.users() == everybody(log)


async def test_what_was_forgotten_after_the_checkpoint_is_forgotten_again(
    tmp_path: Path, store: Checkpoints, log: Log
) -> None:
    await generations(tmp_path, store, log, 1)
    log.events.append(event(ForgetUser, "u2", START + 1))
    async with at_work(Worker(tmp_path / "disk", store, log)) as worker:
        assert await worker.users() == ["u0", "u1", "u3", "u4"]


class Killed(BaseException):
    """Nothing is cleaned up after it."""


@pytest.mark.parametrize("point", ["rename", "rmtree"], ids=["before-its-place", "beside-the-former"])
async def test_a_worker_that_is_killed_while_it_restores_begins_again(
    tmp_path: Path, store: Checkpoints, log: Log, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    """What it left goes, and the disk that it had set aside is used where there is nothing nearer."""
    await left(tmp_path / "disk", store, log)
    aside = tmp_path / "disk" / "shards" / f"{PARTITION}.former"
    half = tmp_path / "disk" / "restoring" / f"{PARTITION}-1-0/files.restoring"
    (half / "shard").mkdir(parents=True)
    (half / "shard" / "catalog.duckdb").write_bytes(b"half")
    place = tmp_path / "disk" / "shards" / str(PARTITION)
    if point == "rename":
        place.rename(aside)
    else:
        shutil.copytree(place, aside)
    async with at_work(Worker(tmp_path / "disk", store, log)) as worker:
        assert (worker.read_again, worker.restores()) == (0, {"disk": 1})
        assert await worker.users() == everybody(log)
    assert not aside.exists()
    assert list((tmp_path / "disk" / "restoring").iterdir()) == []


async def test_a_store_that_is_away_is_waited_for_where_the_log_has_not_all(
    tmp_path: Path, store: Checkpoints, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the log is read. `/readyz` says what is waited for."""
    await generations(tmp_path, store, log, 1)
    away, numbers = [True], store.numbers

    def asked(partition: int) -> list[int]:
        if away[0]:
            raise StoreUnavailable(store.url, "no answer")
        return numbers(partition)

    monkeypatch.setattr(store, "numbers", asked)
    async with at_work(Worker(tmp_path / "log", store, log)) as worker:
        assert worker.restores() == {"log": 1}
    log.start = 2
    worker = Worker(tmp_path / "disk", store, log)
    worker.own()
    await until(worker.restoring.waiting)
    await asyncio.sleep(0)
    assert not worker.shards.ready
    away[0] = False
    await until(lambda: worker.shards.ready)
    assert (worker.restores(), worker.restoring.waiting()) == ({"checkpoint": 1}, [])
    await worker.close()


async def test_a_disk_that_the_log_does_not_reach_waits_for_a_store_that_is_away(
    tmp_path: Path, store: Checkpoints, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opened with a hole, it would be the newest checkpoint soon, and the whole ones gone."""
    await left(tmp_path / "disk", store, log)
    log.say(5)
    await generations(tmp_path, store, log, 1)
    log.start = 9
    answers, numbers = iter([False, False, True]), store.numbers

    def asked(partition: int) -> list[int]:
        if not next(answers, True):
            raise StoreUnavailable(store.url, "no answer")
        return numbers(partition)

    monkeypatch.setattr(store, "numbers", asked)
    async with at_work(Worker(tmp_path / "disk", store, log)) as worker:
        assert worker.restores() == {"checkpoint": 1}
        assert await worker.users() == everybody(log)


async def test_a_worker_that_was_paused_takes_nobodys_place(tmp_path: Path, store: Checkpoints, log: Log) -> None:
    """On a shared data directory its successor is at work: it looks again, once the group counts it in."""
    await generations(tmp_path, store, log, 1)
    late = Worker(tmp_path / "disk", store, log)
    late.member = False
    late.own()
    await until(lambda: list((tmp_path / "disk" / "restoring").glob(f"{PARTITION}-*/files/shard/catalog.duckdb")))
    log.say(2)
    await left(tmp_path / "meanwhile", store, log)
    (tmp_path / "disk" / "shards").mkdir()
    (tmp_path / "meanwhile" / "shards" / str(PARTITION)).rename(tmp_path / "disk" / "shards" / str(PARTITION))
    late.member = True
    await until(lambda: late.shards.ready)
    assert late.restores() == {"disk": 1}
    assert await late.users() == everybody(log)
    await late.close()


async def test_a_partition_that_goes_while_it_is_restored_leaves_nothing(
    tmp_path: Path, store: Checkpoints, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    await generations(tmp_path, store, log, 1)
    begun, restore = asyncio.Event(), store.restore
    loop = asyncio.get_running_loop()

    def slow(manifest: Any, folder: Path, progress: Any) -> None:
        loop.call_soon_threadsafe(begun.set)
        asyncio.run_coroutine_threadsafe(gone.wait(), loop).result(30)
        restore(manifest, folder, progress)

    gone = asyncio.Event()
    monkeypatch.setattr(store, "restore", slow)
    worker = Worker(tmp_path / "disk", store, log)
    worker.own()
    await asyncio.wait_for(begun.wait(), 30)
    await worker.close()
    gone.set()
    await until(lambda: not list((tmp_path / "disk").rglob("*.*")))
    assert not (tmp_path / "disk" / "shards" / str(PARTITION)).exists()
