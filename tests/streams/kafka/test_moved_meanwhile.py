"""Partitions move while rows are being written, and rows are written while partitions move."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from aiokafka.errors import IllegalStateError
from faust.tables.recovery import RebalanceAgain
from faust.transport import consumer as base
from faust.types import TP

from schemas.errors import DataDirError, WindowsLocked
from schemas.settings import Settings
from streams.kafka.commit.kept_partitions import KeptPartitions, leave_all_but
from streams.kafka.commit.marks import Progress
from streams.kafka.faust.recovery import KeptRecovery, KeptTable
from tables.windows.window_stores import WindowStores
from tests.streams.kafka.commit.test_outbox import Broker
from tests.streams.kafka.faust.test_recovery import rejoined
from tests.streams.kafka.worker import TABLE, TextWorker, changelog_of, on_one_partition, running, unconnected
from tests.support.waiting import until
from tests.support.window_stores import close_stores


class Interrupted(KeptPartitions):
    """Something else has its turn while the stores of partitions that leave are closed."""

    def __init__(self, meanwhile: Callable[[], Awaitable[None]]) -> None:
        super().__init__(None, _brings_nothing)
        self._meanwhile = meanwhile

    async def own(self, partitions: Collection[int]) -> None:
        await self._meanwhile()


async def _brings_nothing(_partitions: Sequence[int]) -> None:
    """Without stores, nothing is brought."""


def table_of(worker: TextWorker) -> KeptTable:
    return cast(KeptTable, worker.app.tables[TABLE])


def held(worker: TextWorker, tp: TP) -> KeptTable:
    """The worker's table, of whose changelog ten rows were read."""
    table = table_of(worker)
    table.positions.read(tp.partition, 10, rows=10)
    table.positions.recovered(tp.partition, 10)
    return table


async def test_a_partition_whose_rows_are_on_their_way_when_partitions_move_is_read_again(settings: Settings) -> None:
    """A flush begins while stores of others are closed: it is not known yet where its rows will lie."""
    with unconnected(settings) as worker:
        tp, broker = changelog_of(settings), Broker(held_back=True)
        table = held(worker, tp)
        worker.hot.outbox.connect(broker)
        worker.rows.put(0, b"a", "new")
        flushes: list[asyncio.Task[bool]] = []

        async def flush_begins() -> None:
            flushes.append(asyncio.create_task(worker.hot.outbox.flush()))
            await until(lambda: bool(broker.waiting))

        table._on_disk = Interrupted(flush_begins)
        await table.on_rebalance({tp}, set(), set(), 1)
        assert (table.persisted_offset(tp), worker.texts()) == (-1, {})
        broker.acknowledge()
        assert await flushes[0]
        assert (table.persisted_offset(tp), worker.texts()) == (-1, {})


async def test_a_partition_whose_rows_were_written_while_partitions_moved_stays(settings: Settings) -> None:
    """It is read on from behind these rows."""
    with unconnected(settings) as worker:
        tp, broker = changelog_of(settings), Broker()
        broker.log += [(tp.topic, tp.partition, b"before", b"old")] * 10
        table = held(worker, tp)
        worker.hot.outbox.connect(broker)
        worker.rows.put(0, b"a", "new")

        async def flush() -> None:
            assert await worker.hot.outbox.flush()

        table._on_disk = Interrupted(flush)
        await table.on_rebalance({tp}, set(), set(), 1)
        assert (table.persisted_offset(tp), worker.texts()) == (10, {"a": "new"})


async def test_rows_of_other_partitions_that_are_on_their_way_stay_where_one_is_read_anew(settings: Settings) -> None:
    """Recovery goes on behind what was held of the others: what is dropped of them now would not be read again."""
    settings = settings.model_copy(update={"kafka": settings.kafka.model_copy(update={"partitions": 2})})
    with unconnected(settings) as worker:
        broker = Broker(held_back=True)
        table = held(worker, TP(changelog_of(settings).topic, 1))
        worker.hot.outbox.connect(broker)
        worker.rows.put(1, b"a", "new")
        flush = asyncio.create_task(worker.hot.outbox.flush())
        await until(lambda: bool(broker.waiting))
        table.start_over(0)
        assert worker.texts() == {"a": "new"}
        broker.acknowledge()
        assert await flush
        assert worker.texts() == {"a": "new"}


def test_how_far_records_of_a_former_topic_were_written_does_not_hide_those_of_the_new_one() -> None:
    """It was on its way when the topic was found to be another one, or the partition moved."""
    reached = {0: 500, 1: 500, 2: 500}
    progress = Progress(lambda: reached)
    due = progress.due()
    progress.start_over(0)
    progress.keep([0, 2])
    progress.wrote(due)
    assert [progress.written(partition) for partition in reached] == [0, 0, 500]


def recovery_of(worker: TextWorker, tp: TP) -> KeptRecovery:
    recovery = cast(KeptRecovery, cast(Any, worker.app.tables).recovery)
    recovery.add_active(worker.app.tables[TABLE], tp)
    return recovery


async def beginning_at(
    worker: TextWorker, monkeypatch: pytest.MonkeyPatch, start: int, meanwhile: Callable[[], Awaitable[None]]
) -> None:
    """The changelog begins there, and something else has its turn while the broker is asked for that."""

    async def earliest(partitions: Collection[TP]) -> Mapping[TP, int]:
        await meanwhile()
        return dict.fromkeys(partitions, start)

    async def mark(changelogs: Mapping[str, Collection[int]]) -> Mapping[tuple[str, int], int]:
        return {(topic, one): 10 for topic, partitions in changelogs.items() for one in partitions}

    monkeypatch.setattr(worker.consumer, "_earliest", earliest)
    table_of(worker).mark = cast(Any, mark)


async def test_a_changelog_that_was_emptied_is_read_anew_though_rows_were_written_meanwhile(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was held before them decides: of what lay between that and the log's beginning nothing is known."""
    with unconnected(settings) as worker:
        tp, broker = changelog_of(settings), Broker(held_back=True)
        table = held(worker, tp)
        recovery = recovery_of(worker, tp)
        worker.hot.outbox.connect(broker)
        worker.rows.put(0, b"a", "new")

        async def flush_begins() -> None:
            flushes.append(asyncio.create_task(worker.hot.outbox.flush()))
            await until(lambda: bool(broker.waiting))

        flushes: list[asyncio.Task[bool]] = []
        await beginning_at(worker, monkeypatch, 10, flush_begins)
        await recovery._build_highwaters(None, {tp}, recovery.active_highwaters, "active")
        assert (table.positions.known(0), worker.texts()) == (None, {})
        broker.acknowledge()
        assert await flushes[0]
        assert (table.positions.known(0), worker.texts()) == (None, {})


async def test_a_recovery_ends_where_partitions_are_assigned_while_it_asks_the_broker(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it found out is of partitions that have gone: their stores are closed, and others are read."""
    with unconnected(settings) as worker:
        tp = changelog_of(settings)
        table, recovery, started_over = held(worker, tp), recovery_of(worker, tp), list[int]()
        monkeypatch.setattr(table, "start_over", started_over.append)

        async def assigned() -> None:
            worker.hot.assignments += 1

        await beginning_at(worker, monkeypatch, 10, assigned)
        with pytest.raises(RebalanceAgain):
            await recovery._build_highwaters(None, recovery.active_tps, recovery.active_highwaters, "active")
        assert started_over == []


async def test_partitions_that_are_assigned_while_a_mark_is_written_are_not_taken_for_those_before(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The set that Faust gives is changed in place."""
    with unconnected(settings) as worker:
        tp = changelog_of(settings)
        recovery = recovery_of(worker, tp)

        async def mark(changelogs: Mapping[str, Collection[int]]) -> Mapping[tuple[str, int], int]:
            worker.hot.assignments += 1
            recovery.active_tps.clear()
            return {(topic, one): 10 for topic, partitions in changelogs.items() for one in partitions}

        table_of(worker).mark = cast(Any, mark)
        with pytest.raises(RebalanceAgain):
            await recovery._build_highwaters(None, recovery.active_tps, recovery.active_highwaters, "active")


async def test_a_store_that_is_being_closed_is_no_longer_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is closed on a thread: what the loop flushes meanwhile would be written to a closed store."""
    stores = WindowStores(tmp_path)
    for partition in (0, 1):
        stores.open(partition)
    kept, found = KeptPartitions(stores, _brings_nothing), list[Collection[int]]()

    async def before_the_thread_begins(work: Callable[..., None], *given: int) -> None:
        found.append(stores.partitions())
        work(*given)

    monkeypatch.setattr(asyncio, "to_thread", before_the_thread_begins)
    await kept.own(())
    assert found == [[], []]


async def test_a_store_whose_rows_do_not_go_to_the_disk_keeps_no_other_open(tmp_path: Path) -> None:
    stores = WindowStores(tmp_path)
    for partition in (0, 1, 2):
        stores.open(partition)
    failing = stores.store(1)
    assert failing is not None
    close = failing.close

    def fails() -> None:
        close()
        raise DataDirError(failing.folder, "No space left on device")

    failing.close = fails  # type: ignore[method-assign]
    with pytest.raises(DataDirError):
        await leave_all_but({0}, stores)
    assert stores.partitions() == [0]
    again = WindowStores(tmp_path)
    again.open(2)
    with pytest.raises(WindowsLocked):
        again.open(0)
    close_stores(stores)
    close_stores(again)


async def test_offsets_of_partitions_that_moved_during_the_flush_are_not_committed(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What their records changed was undone, and is not in the changelog: they are read again from the commit."""
    with unconnected(settings) as worker:
        consumer, taken = worker.consumer, list[Mapping[TP, int]]()
        moved, stays = TP(worker.topic, 0), TP(worker.topic, 1)
        for tp in (moved, stays):
            consumer._ledgers[tp].deliver(499)
            consumer._ledgers[tp].acknowledge(499)

        async def is_member(_method: object) -> bool:
            return True

        async def flush() -> bool:
            consumer._ledgers.pop(moved)
            consumer._ledgers[moved].begin(400)
            return True

        async def commit(_consumer: object, offsets: Mapping[TP, int], _start_new: bool) -> bool:
            taken.append(offsets)
            return True

        monkeypatch.setattr(consumer._thread, "call_thread", is_member)
        monkeypatch.setattr(worker.hot.outbox, "flush", flush)
        monkeypatch.setattr(base.Consumer, "_commit_offsets", commit)
        assert await consumer._commit_offsets({moved: 500, stays: 500})
        assert taken == [{stays: 500}]


async def test_each_assignment_has_a_number_of_its_own(settings: Settings) -> None:
    """Also where the same partitions are assigned again."""
    async with running(on_one_partition(settings)) as worker:
        await until(lambda: worker.recovered is not None)
        first = worker.hot.assignments
        await rejoined(worker)
        assert worker.hot.assignments > first > 0


async def test_a_seek_ends_where_partitions_are_assigned_meanwhile(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The partitions that it would call sought are not: they are sought when their tables are back."""
    with unconnected(settings) as worker:
        consumer, tp = worker.consumer, TP(worker.topic, 0)

        async def assigned_meanwhile(_consumer: object) -> None:
            worker.hot.assignments += 1

        monkeypatch.setattr(consumer, "assignment", lambda: {tp})
        monkeypatch.setattr(base.Consumer, "perform_seek", assigned_meanwhile)
        with pytest.raises(IllegalStateError):
            await consumer._seek_to_start()
        assert (consumer.sought, dict(consumer._ledgers)) == (set(), {})
