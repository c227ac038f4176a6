"""What a worker keeps of partitions that have moved to another one's disk is forgotten with their users."""

from __future__ import annotations

import errno
import logging
import uuid
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import duckdb
import pytest

from schemas.events import Forget, ForgetUser
from schemas.settings import Settings
from streams.kafka.bulk import producing
from streams.kafka.clients.broker import ensure_topics
from streams.kafka.clients.log_reader import end_of, records_between
from streams.worker.former_partitions import FormerWindows
from tables.memories.shard import Shard
from tables.windows.window_stores import WindowStores
from tests.streams.memory.test_agent import USERS, Worker, said, worker
from tests.support.locks import held_elsewhere
from tests.support.making import START
from tests.support.sparse import held
from tests.support.waiting import until
from tests.support.window_stores import close_stores

__all__ = ["worker"]

OTHER = "unmistakable-tea"


@pytest.fixture
async def moved(worker: Worker, tmp_path: Path) -> AsyncIterator[Worker]:
    """A worker that had partition 0: its shard, a day file and the analysts' rows are here; it has 1 alone now."""
    worker.model.gate.set()
    for place in (0, 1):
        await (await worker.handle(place, *said(place, OTHER, "milk")))
    at = datetime(2026, 1, 1, tzinfo=UTC)
    worker.siltstone.summaries.files.append(USERS[0], date(2026, 1, 1), uuid.uuid4(), OTHER, at)
    await worker.siltstone.jobs.analytics.snapshot()
    worker.shards.own(frozenset({1}))
    worker.agent.own(frozenset({1}))
    await worker.shards._closing[0]
    yield worker
    worker.siltstone.jobs.analytics.close()


def logged(worker: Worker, *events: Any) -> list[Any]:
    """What another worker has read meanwhile, in the log of partition 0."""
    records = worker.fetched(0, *events)
    first = records[0].offset
    for record in records:
        record.timestamp = START + 90 * 86_400_000

    async def read(partition: int, start: int, end: int) -> AsyncGenerator[Sequence[Any], None]:
        if partition == 0:
            yield records[max(0, start - first) : end - first]

    async def end(partition: int) -> int:
        return int(first) + len(records)

    worker.siltstone.jobs.former._read, worker.siltstone.jobs.former._end = read, end
    worker.agent._read = read
    return records


def holding(folder: Path, word: str) -> list[str]:
    others = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".parquet"]
    found = [path.name for path in others if word.encode() in held(path).written]
    for path in folder.rglob("*.parquet"):
        rows = duckdb.execute(f"FROM read_parquet('{path}') WHERE partition = 0").fetchall()
        found += [path.name] if word in repr(rows) else []
    return found


def of_partition_0(tmp_path: Path) -> list[str]:
    places = (tmp_path / "shards" / "0", tmp_path / "memory", tmp_path / "analytics" / "parquet")
    return [name for place in places for name in holding(place, OTHER)]


def forget_user() -> ForgetUser:
    return ForgetUser(event_id=uuid.uuid4(), user_id=USERS[0], timestamp=START + 5)


@pytest.mark.slow
async def test_a_former_owner_forgets_shard_day_files_and_the_analysts_rows(moved: Worker, tmp_path: Path) -> None:
    """What comes before the command in the log, and is not here, is not needed for it."""
    logged(moved, *said(0, "bread"), forget_user())
    assert set(of_partition_0(tmp_path)) >= {"catalog.duckdb", "2026-01-01.md", "0.parquet"}
    await moved.siltstone.jobs.former.tick()
    assert of_partition_0(tmp_path) == []
    with duckdb.connect(str(tmp_path / "analytics" / "siltstone.duckdb"), read_only=True) as db:
        assert db.execute("SELECT partition, count(*) FROM memories GROUP BY partition").fetchall() == [(1, 2)]
    inode = (tmp_path / "shards" / "0" / "catalog.duckdb").stat().st_ino
    await moved.siltstone.jobs.former.tick()
    assert (tmp_path / "shards" / "0" / "catalog.duckdb").stat().st_ino == inode


@pytest.mark.parametrize("damage", ["no catalog", "a page", "no space"])
async def test_a_former_shard_that_cannot_be_read_is_told_and_tried_again(
    moved: Worker, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    """It stopped the worker, every five minutes, for a partition that is another's."""
    logged(moved, forget_user())
    catalog = tmp_path / "shards" / "0" / "catalog.duckdb"
    whole = catalog.read_bytes()
    with monkeypatch.context() as patch:
        if damage == "no space":
            patch.setattr(Shard, "forget_ahead", raising(OSError(errno.ENOSPC, "no space left on device")))
        else:
            catalog.write_bytes(b"no catalog" if damage == "no catalog" else whole[:8192] + b"\xff" * 8192)
        await moved.siltstone.jobs.former.tick()
    assert "shard 0: its files here were not checked for forgotten data" in caplog.text
    if damage != "no space":
        catalog.write_bytes(whole)
    await moved.siltstone.jobs.former.tick()
    assert of_partition_0(tmp_path) == []


async def test_windows_that_another_worker_has_are_removed(tmp_path: Path) -> None:
    """A tick after they went, and with them what nobody here would be told of; what comes back at once stays."""
    stores, ours = WindowStores(tmp_path), {0, 1, 2}
    former = FormerWindows(lambda: stores, lambda: ours)
    for partition in range(4):
        stores.open(partition)
    stores.leave(2).close()
    stores.leave(3).close()
    await former.tick()
    stores.leave(0).close()
    stores.leave(1).close()
    ours -= {0, 1}
    await former.tick()
    assert stores.former() == {0, 1, 2}, "what is ours stays, also where it is not open yet"
    stores.open(1)
    ours.add(1)
    await former.tick()
    assert stores.former() == {2}
    ours.clear()
    await former.tick()
    await former.tick()
    assert stores.former() == {2}, "nobody knows whose it is"
    close_stores(stores)


def raising(exc: Exception) -> Callable[..., Any]:
    def fail(*_: object) -> None:
        raise exc

    return fail


@pytest.mark.slow
async def test_a_single_memory_is_forgotten_there_too(moved: Worker, tmp_path: Path) -> None:
    (tea,) = said(0, OTHER)
    logged(moved, Forget(event_id=uuid.uuid4(), user_id=USERS[0], timestamp=START + 5, memory_id=tea.event_id))
    await moved.siltstone.jobs.former.tick()
    assert of_partition_0(tmp_path) == ["2026-01-01.md"]  # a day's summary is not one memory's


@pytest.mark.slow
async def test_what_comes_back_is_as_if_it_had_never_been_forgotten_early(moved: Worker, tmp_path: Path) -> None:
    """Each event once; the tombstone is there, once, and what was said after the command."""
    late = said(0, "late")[0].model_copy(update={"timestamp": START + 9})
    records = logged(moved, *said(0, "bread"), forget_user(), late)
    await moved.siltstone.jobs.former.tick()
    moved.assign()
    await moved.agent.catch_up(0, records[-1].offset + 1)
    kept = await moved.shards.call(0, Shard.memories_of, USERS[0])
    tombstones = await moved.shards.call(0, lambda shard: shard._catalog.tombstones([USERS[0]]))
    assert ([memory.text for memory in kept], len(tombstones)) == (["late"], 1)
    assert await moved.shards.call(0, Shard.in_step)


@pytest.mark.slow
async def test_a_shard_that_another_process_has_is_its_owners(
    moved: Worker, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Workers that share a data directory: the owner forgets, day files, too. It is looked at again later."""
    logged(moved, forget_user())
    with held_elsewhere(tmp_path / "shards" / "0.lock"), caplog.at_level(logging.WARNING):
        await moved.siltstone.jobs.former.tick()
    assert (caplog.messages, "2026-01-01.md" in of_partition_0(tmp_path)) == ([], True)
    await moved.siltstone.jobs.former.tick()
    assert of_partition_0(tmp_path) == []


@pytest.mark.slow
async def test_a_partition_that_comes_back_meanwhile_is_opened_afterwards(moved: Worker) -> None:
    """Its files are in one hand at a time."""
    seen = []

    def work() -> None:
        seen.append(0 in moved.shards._open)

    await moved.shards.with_files_of(0, work)
    moved.assign()
    await until(lambda: moved.shards.ready)
    assert (seen, await moved.count(0)) == ([False], 2)


async def test_the_end_of_a_partition_is_asked_of_the_broker(settings: Settings) -> None:
    """Of an empty one it is 0; what is read up to it is all."""
    await ensure_topics(settings.kafka)
    topic, kafka = f"{settings.kafka.topic_prefix}long-term", settings.kafka
    assert await end_of(kafka, topic, 0) == 0
    async with producing(kafka) as producer:
        for number in range(3):
            await (await producer._producer.send(topic, b"%d" % number, partition=0))
    assert await end_of(kafka, topic, 0) == 3
    read = [record.value async for records in records_between(kafka, topic, 0, 1, 3) for record in records]
    assert read == [b"1", b"2"]
