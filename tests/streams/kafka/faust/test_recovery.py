"""A table comes back whole, although the embedded broker says too little of where its changelog ends."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from types import SimpleNamespace
from typing import Any, cast

import aiokafka
import pytest
from aiokafka.errors import NotEnoughReplicasError
from faust.tables.recovery import RebalanceAgain
from faust.types import TP

from schemas.settings import Settings
from schemas.topics import partition_of
from streams.kafka.clients.broker import client_options
from streams.kafka.commit.marks import MARK
from streams.kafka.commit.outbox import Outbox
from streams.kafka.faust.recovery import KeptRecovery, KeptTable
from streams.kafka.faust.threads import ConsumerThread
from tests.streams.kafka.worker import (
    TABLE,
    TextWorker,
    changelog_of,
    connected,
    feed,
    make_changelog,
    on_one_partition,
    running,
    unconnected,
)
from tests.support.waiting import until

KEYS = [f"key {n}" for n in range(60)]


async def write(settings: Settings, batches: Sequence[Sequence[str]]) -> None:
    """Write each batch's keys, with the value "old", to a new changelog."""
    await make_changelog(on_one_partition(settings))
    topic, partition = changelog_of(settings)
    producer = aiokafka.AIOKafkaProducer(**client_options(settings.kafka))
    await producer.start()
    try:
        for keys in batches:
            batch = producer.create_batch()
            for key in keys:
                batch.append(key=key.encode(), value=b"old", timestamp=None)
            batch.close()
            await (await producer.send_batch(batch, topic, partition=partition))
    finally:
        await producer.stop()


async def add(settings: Settings, rows: dict[str, bytes]) -> None:
    """Write to the changelog as another worker would."""
    topic, partition = changelog_of(settings)
    async with aiokafka.AIOKafkaProducer(**client_options(settings.kafka)) as producer:
        for key, value in rows.items():
            await producer.send_and_wait(topic, value, key.encode(), partition)


@pytest.mark.parametrize("batches", [(), (1,), (5,), (2, 40), (40, 1)], ids=str)
async def test_the_end_of_a_changelog_is_behind_its_last_record(settings: Settings, batches: Sequence[int]) -> None:
    """However the records were batched. The broker's own answer is the last batch's first offset + 1."""
    changelog = changelog_of(settings)
    await write(settings, [KEYS[:records] for records in batches])
    async with connected(settings) as consumer:
        assert await consumer.highwaters(changelog) == {changelog: sum(batches)}


async def test_a_table_whose_newest_values_were_one_batch_comes_back_whole(settings: Settings) -> None:
    settings = on_one_partition(settings)
    async with running(settings) as first:
        for end, value in ((60, "old"), (120, "new")):
            await feed(settings, KEYS, value)
            await until(lambda: first.done == end)  # noqa: B023 - it is awaited here
            assert await first.consumer.commit()
    async with running(settings) as second:
        await until(lambda: second.recovered is not None)
        assert second.recovered == dict.fromkeys(KEYS, "new")
        assert second.read == []


async def test_where_a_changelog_ends_is_not_what_its_leader_says(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that was paused takes itself for the leader, and has not what was written meanwhile."""

    async def stale(_: Any, partitions: list[TP]) -> dict[TP, int]:
        return dict.fromkeys(partitions, 1)

    settings = on_one_partition(settings)
    await write(settings, [["a"], ["b", "c"]])
    monkeypatch.setattr(ConsumerThread, "_highwaters", stale)
    async with running(settings) as worker:
        await until(lambda: worker.recovered is not None)
        assert worker.recovered == dict.fromkeys("abc", "old")


async def test_a_mark_that_is_not_taken_is_written_until_it_is(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Brokers may be away: without a mark, nobody knows how much is to be read."""
    mark, refusals = Outbox.mark, [NotEnoughReplicasError()]

    async def refused_first(outbox: Outbox, changelogs: Any) -> Any:
        if refusals:
            raise refusals.pop()
        return await mark(outbox, changelogs)

    settings = on_one_partition(settings)
    await write(settings, [KEYS])
    monkeypatch.setattr(Outbox, "mark", refused_first)
    async with running(settings) as worker:
        await until(lambda: worker.recovered is not None)
        assert worker.recovered == dict.fromkeys(KEYS, "old")
    assert "a changelog accepts no records: NotEnoughReplicasError" in caplog.text


async def test_a_changelog_comes_back_a_fetched_batch_at_a_time(settings: Settings, applied: list[int]) -> None:
    """To Faust, each of them is one event: it can handle a few thousand of those a second."""
    settings = on_one_partition(settings)
    await write(settings, [KEYS] * 5)
    async with running(settings) as worker:
        await until(lambda: worker.recovered is not None)
        assert worker.recovered == dict.fromkeys(KEYS, "old")
    assert sum(applied) == 5 * len(KEYS)
    assert len(applied) <= 5


async def rejoined(worker: TextWorker) -> None:
    """The group is joined again, and the table recovered."""
    worker.recovered = None
    thread = worker.consumer._thread
    await thread.call_thread(thread._ensure_consumer()._coordinator.request_rejoin)
    await until(lambda: worker.recovered is not None)


@pytest.fixture
def applied(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows of each event were applied, but for marks."""
    rows: list[int] = []
    apply = KeptTable.apply_changelog_batch

    def applied(table: KeptTable, batch: list[Any]) -> None:
        found = (sum(not record.key.startswith(MARK) for record in event.message.value) for event in batch)
        rows.extend(filter(None, found))
        apply(table, batch)

    monkeypatch.setattr(KeptTable, "apply_changelog_batch", applied)
    return rows


async def test_after_a_rebalance_a_table_is_what_its_changelog_says(settings: Settings) -> None:
    """What was changed since the last commit is undone, as the records that changed it are read again.

    Half of it would be undone otherwise: rows of the changelog come back, others stay deleted.
    """
    settings = on_one_partition(settings)
    await write(settings, [["a", "b"]])
    async with running(settings) as worker:
        await until(lambda: worker.recovered is not None)
        worker.rows.delete(0, b"a")
        worker.rows.put(0, b"b", "new")
        worker.rows.put(0, b"c", "new")
        await rejoined(worker)
        assert worker.recovered == {"a": "old", "b": "old"}
        assert worker.rows.drain() == []


async def test_partitions_that_stay_are_not_read_again(settings: Settings, applied: list[int]) -> None:
    """Neither what was read nor what this worker has written since, whichever was in the changelog at first."""
    settings = on_one_partition(settings)
    async with running(settings) as worker:
        await until(lambda: worker.recovered is not None)
        for end, value in ((60, "old"), (120, "new")):
            await feed(settings, KEYS, value)
            await until(lambda: worker.done == end)  # noqa: B023 - it is awaited here
            assert await worker.consumer.commit()
            await rejoined(worker)
            assert worker.recovered == dict.fromkeys(KEYS, value)
        assert applied == []
        assert [held.rows for held in await worker.hot.restored()] == [
            120 + 2
        ]  # and up to where they were read, twice


async def test_another_worker_reads_the_partitions_that_it_takes_and_nobody_reads_the_others(
    settings: Settings, applied: list[int]
) -> None:
    kafka = settings.kafka.model_copy(update={"partitions": 2, "commit_seconds": 3600.0})
    settings = settings.model_copy(update={"kafka": kafka})
    everywhere = {partition_of(key, 2) for key in KEYS}
    async with running(settings) as first:
        await until(lambda: first.recovered is not None)
        await feed(settings, KEYS, "x")
        await until(lambda: len(first.texts()) == len(KEYS))
        assert await first.consumer.commit()
        first.recovered = None
        async with running(settings) as second:
            await until(lambda: bool(second.recovered))
            await until(lambda: bool(first.recovered))
            kept, taken = first.texts(), second.texts()
            assert (everywhere, sorted([*kept, *taken])) == ({0, 1}, sorted(KEYS))
            assert sum(applied) == len(taken)


async def test_of_a_partition_that_is_not_yet_read_nothing_is_told(settings: Settings) -> None:
    """It is asked while partitions move: no row yet is no changelog that was emptied."""
    async with running(on_one_partition(settings)) as worker:
        await until(lambda: worker.recovered is not None)
        assert [held.rows for held in await worker.hot.restored()] == [0]
        cast(KeptTable, worker.app.tables[TABLE]).positions.keep([])
        assert await worker.hot.restored() == []


async def test_what_others_wrote_meanwhile_is_read_of_a_partition_that_stays(
    settings: Settings, applied: list[int]
) -> None:
    """A worker that was paused may have sent it before it knew that the partition had moved to us."""
    settings = on_one_partition(settings)
    await write(settings, [KEYS])
    async with running(settings) as worker:
        await until(lambda: worker.recovered is not None)
        applied.clear()
        await add(settings, {"a": b"theirs", KEYS[0]: b"theirs"})
        await rejoined(worker)
        assert worker.recovered == {**dict.fromkeys(KEYS, "old"), "a": "theirs", KEYS[0]: "theirs"}
        assert sum(applied) <= 3


async def test_what_changed_while_rows_were_read_is_read_again(settings: Settings) -> None:
    """It was changed from what was there by then, which is not what the changelog says."""
    async with recovering(settings, 5) as (worker, recovery):
        tp = changelog_of(settings)
        table = cast(KeptTable, worker.app.tables[TABLE])
        worker.rows.put(0, b"up to 4", "changed")
        recovery.tables.changelog_queue.put_nowait(read(settings, 4, worker.app.consumer_generation_id))
        await until(lambda: not recovery.in_recovery)
        await table.on_recovery_completed({tp}, set())
        assert table.persisted_offset(tp) == -1


@pytest.mark.parametrize("when", ["a foreign row", "an attempt that failed", "a generation without us"])
async def test_a_partition_is_read_from_its_start_where_memory_may_differ_from_it(
    settings: Settings, applied: list[int], when: str
) -> None:
    settings = on_one_partition(settings)
    await write(settings, [KEYS])
    async with running(settings) as worker:
        await until(lambda: worker.recovered is not None)
        applied.clear()
        table = cast(KeptTable, worker.app.tables[TABLE])
        if when == "a foreign row":
            await add(settings, {"a": b"theirs"})
        else:
            worker.rows.put(0, b"a", "theirs")
        worker.rows.put(0, b"b", "ours")
        assert await worker.hot.outbox.flush()
        if when == "an attempt that failed":
            table.positions.begin([0])
            table.positions.fail()
        elif when == "a generation without us":
            table._generation -= 2
        await rejoined(worker)
        assert worker.recovered == {**dict.fromkeys(KEYS, "old"), "a": "theirs", "b": "ours"}
        assert sum(applied) == len(KEYS) + 2


async def test_rows_that_are_fetched_before_flow_resumes_are_read(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A fetch that was begun before the rebalance brings them: Faust drops them, and waits for them for ever."""
    begun, sought, seek = asyncio.Event(), asyncio.Event(), KeptRecovery._seek_offsets

    async def late(*arguments: Any) -> None:
        await seek(*arguments)
        sought.set()
        await asyncio.sleep(1)

    settings = on_one_partition(settings)
    await write(settings, [KEYS])
    async with running(settings) as worker:
        await until(lambda: worker.recovered is not None)
        thread = worker.consumer._thread
        fetch = thread.getmany

        async def across(partitions: set[TP], timeout: float) -> Any:
            if sought.is_set():
                return await fetch(partitions, timeout)
            begun.set()
            await sought.wait()
            fetcher = thread._ensure_consumer()._fetcher
            return await thread.call_thread(fetcher.fetched_records, [changelog_of(settings)], 5)

        monkeypatch.setattr(thread, "getmany", across)
        await begun.wait()
        monkeypatch.setattr(KeptRecovery, "_seek_offsets", late)
        cast(KeptTable, worker.app.tables[TABLE]).positions.keep(())  # all of it is read again
        await rejoined(worker)
        assert worker.recovered == dict.fromkeys(KEYS, "old")


async def test_a_changelog_that_is_shorter_than_what_was_read_of_it_is_another_one(
    settings: Settings, applied: list[int], caplog: pytest.LogCaptureFixture
) -> None:
    settings = on_one_partition(settings)
    await write(settings, [["a"]])
    async with running(settings) as worker:
        await until(lambda: worker.recovered is not None)
        applied.clear()
        worker.rows.put(0, b"gone", "x")
        worker.rows.drain()
        positions = cast(KeptTable, worker.app.tables[TABLE]).positions
        positions.read(0, 99, rows=98)
        positions.recovered(0, 99)
        await rejoined(worker)
        assert (worker.recovered, applied) == ({"a": "old"}, [1])
        assert "it ends before the last offset that was read" in caplog.text


async def test_a_row_of_a_changelog_that_cannot_be_read_stops_the_worker(settings: Settings) -> None:
    with unconnected(settings) as worker:
        row = SimpleNamespace(key=b"a", value=b"\xff")
        message = SimpleNamespace(tp=TP("changelog", 0), partition=0, offset=0, value=[row])
        worker.app.tables[TABLE].apply_changelog_batch([cast(Any, SimpleNamespace(message=message))])
        await until(lambda: worker.hot.halted is not None)


@contextlib.asynccontextmanager
async def recovering(settings: Settings, end: int) -> AsyncIterator[tuple[TextWorker, KeptRecovery]]:
    """A worker that is not connected, in whose changelog recovery reads up to `end`; it is given what it reads."""
    with unconnected(settings) as worker:
        recovery = cast(KeptRecovery, cast(Any, worker.app.tables).recovery)
        tp = changelog_of(settings)
        recovery.add_active(worker.app.tables[TABLE], tp)
        recovery._set_recovery_started()
        recovery.active_highwaters[tp] = end - 1
        reading = asyncio.ensure_future(type(recovery)._slurp_changelogs.fun(recovery))
        try:
            yield worker, recovery
        finally:
            reading.cancel()


def read(settings: Settings, offset: int, generation: int) -> Any:
    """The event of a fetched batch that ends at `offset`, of one row."""
    tp = changelog_of(settings)
    row = SimpleNamespace(key=f"up to {offset}".encode(), value=b"row")
    message = SimpleNamespace(tp=tp, partition=tp.partition, offset=offset, value=[row], generation_id=generation)
    return SimpleNamespace(message=message)


async def test_an_end_that_is_reached_before_anybody_waits_for_it_is_not_missed(settings: Settings) -> None:
    """All came with one fetch: Faust's recovery waited on for ever, and nobody was answered, without a word."""
    async with recovering(settings, 5) as (worker, recovery):
        recovery.tables.changelog_queue.put_nowait(read(settings, 4, worker.app.consumer_generation_id))
        await until(lambda: not recovery.in_recovery)
        await asyncio.sleep(0)
        await asyncio.wait_for(recovery._wait(recovery.signal_recovery_end.wait()), 10)


async def test_each_recovery_has_an_end_of_its_own(settings: Settings) -> None:
    async with recovering(settings, 5) as (worker, recovery):
        recovery.tables.changelog_queue.put_nowait(read(settings, 4, worker.app.consumer_generation_id))
        await until(lambda: not recovery.in_recovery)
        recovery._set_recovery_started()
        assert not recovery.signal_recovery_end.is_set()


async def test_what_was_fetched_for_an_earlier_assignment_does_not_count_as_read(settings: Settings) -> None:
    """The rows before it would be left out: the changelog is read from its start again."""
    async with recovering(settings, 9) as (worker, recovery):
        worker.app.consumer_generation_id = 7
        for offset, generation in ((5, 6), (2, 7), (8, 7)):
            recovery.tables.changelog_queue.put_nowait(read(settings, offset, generation))
        await until(lambda: not recovery.in_recovery)
        assert worker.texts() == {"up to 2": "row", "up to 8": "row"}


async def test_rows_of_a_partition_that_has_gone_are_not_taken(settings: Settings) -> None:
    async with recovering(settings, 2) as (worker, recovery):
        gone, ours = read(settings, 5, 0), read(settings, 1, 0)
        gone.message.tp = TP("another-changelog", 3)
        for event in (gone, ours):
            recovery.tables.changelog_queue.put_nowait(event)
        await until(lambda: not recovery.in_recovery)
        assert worker.texts() == {"up to 1": "row"}


async def test_recovery_begins_anew_where_the_broker_does_not_answer_in_time(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    """Faust's ended without a word, and the worker was never ready."""
    async with recovering(settings, 1) as (_, recovery):
        with pytest.raises(RebalanceAgain):
            await recovery._wait(asyncio.Event().wait(), timeout=0.01)
        assert recovery.signal_recovery_start.is_set()
        assert "recovery of the tables starts over" in caplog.text


async def test_what_fails_after_recovery_stops_the_worker_with_the_reason(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Faust swallows it: the worker would read on, and never be ready."""

    async def fails(worker: TextWorker) -> None:
        raise ValueError("a row that nobody understands")

    monkeypatch.setattr(TextWorker, "_on_recovered", fails)
    async with running(on_one_partition(settings)) as worker:
        with pytest.raises(ValueError, match="a row that nobody understands"):
            await asyncio.wait_for(worker.hot.until_halted(), 20)
