"""What is fetched while partitions are sought is neither lost nor left out, as it is in Faust itself.

A rebalance ends with a seek to the committed offsets. Faust reads on meanwhile, and takes what it read as coming
after the seek: the records between the committed offset and these would be committed without being processed.
"""

from __future__ import annotations

from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.consumer.group_coordinator import GroupCoordinator
from aiokafka.errors import IllegalStateError
from aiokafka.structs import OffsetAndMetadata
from faust.types import TP

from schemas.settings import Settings
from streams.kafka.clients.broker import ensure_topics
from streams.kafka.faust import fetching
from streams.kafka.faust.consumer import Consumer
from streams.kafka.faust.threads import OURS
from tests.streams.kafka.worker import TextWorker, connected, feed, on_one_partition, running
from tests.support.committed import committed
from tests.support.waiting import until


async def seek(worker: TextWorker) -> None:
    """What recovery does at its end."""
    await seek_on(worker.consumer)


async def seek_on(consumer: Consumer) -> None:
    await consumer.perform_seek()
    consumer.resume_flow()


class Interruption:
    """Seeks when records are fetched, and before the consumer is given them; once, when it is `due`."""

    def __init__(self, worker: TextWorker, monkeypatch: pytest.MonkeyPatch) -> None:
        self._worker, self.due = worker, False
        self._fetch = worker.consumer._thread.getmany
        monkeypatch.setattr(worker.consumer._thread, "getmany", self)

    async def __call__(self, active_partitions: set[TP] | None, timeout: float) -> Any:
        fetched = await self._fetch(active_partitions, timeout)
        if fetched and self.due:
            self.due = False
            await seek(self._worker)
        return fetched


async def test_records_fetched_across_a_seek_are_read_again_in_their_place(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """2 records are committed, 3 more are processed, 4 are fetched while the seek goes back to the committed ones."""
    settings = on_one_partition(settings)
    async with running(settings) as worker:
        interruption = Interruption(worker, monkeypatch)
        await feed(settings, ["a"] * 2, "x")
        await until(lambda: worker.done == 2)
        assert await worker.consumer.commit()
        await feed(settings, ["a"] * 3, "x")
        await until(lambda: worker.done == 5)
        worker.read.clear()

        interruption.due = True
        await feed(settings, ["a"] * 4, "x")
        await until(lambda: worker.done == 9)
        assert not interruption.due
        assert worker.read == [2, 3, 4, 5, 6, 7, 8]
        assert await worker.consumer.commit()
        assert await committed(settings.kafka, 0) == 9


async def test_a_partition_without_a_committed_offset_is_read_from_its_start(settings: Settings) -> None:
    """A seek to the committed offset alone would leave it where it is."""
    settings = on_one_partition(settings)
    async with running(settings) as worker:
        await feed(settings, ["a"] * 3, "x")
        await until(lambda: worker.done == 3)
        worker.read.clear()

        await seek(worker)
        await until(lambda: worker.done == 3)
        assert worker.read == [0, 1, 2]
        assert await committed(settings.kafka, 0) is None


@pytest.mark.parametrize(("note", "again"), [(OURS, []), ("", [1, 2])], ids=["ours", "somebody's"])
async def test_an_offset_that_is_older_than_what_the_table_has_read(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, note: str, again: list[int]
) -> None:
    """A former coordinator of the group may tell one of ours: a session that has ended since would start over.

    What somebody has set back is read again.
    """

    async def told(coordinator: Any, partitions: list[TopicPartition]) -> dict[TopicPartition, OffsetAndMetadata]:
        return {tp: OffsetAndMetadata(1, note) for tp in partitions if tp.topic.endswith(".conversations")}

    async def committed(consumer: Any, partition: TopicPartition) -> int | None:
        return 1 if partition.topic.endswith(".conversations") else None

    settings = on_one_partition(settings)
    async with running(settings) as worker:
        await feed(settings, ["a"] * 3, "x")
        await until(lambda: worker.done == 3)
        assert await worker.consumer.commit()
    monkeypatch.setattr(GroupCoordinator, "fetch_committed_offsets", told)
    monkeypatch.setattr(AIOKafkaConsumer, "committed", committed)
    async with running(settings) as worker:
        await until(lambda: worker.done == 3)
        await feed(settings, ["a"], "x")
        await until(lambda: worker.done == 4)
        assert worker.read == [*again, 3]


async def test_an_offset_of_a_topic_that_was_deleted_counts_for_nothing_in_the_next_of_its_name(
    settings: Settings,
) -> None:
    """Until the worker has committed one itself: Faust would drop what lies before the former one."""
    settings = on_one_partition(settings)
    await ensure_topics(settings.kafka)
    await feed(settings, ["a", "b", "c"], "x")
    async with running(settings) as worker:
        await until(lambda: worker.done == 3)
        assert await worker.consumer.commit()
    async with running(settings, started_over=True) as worker:
        await until(lambda: worker.done == 3)
        assert worker.read == [0, 1, 2]
        assert not worker.hot.has_started_over()
        await feed(settings, ["d"], "x")
        await until(lambda: worker.done == 4)
        assert await worker.consumer.commit()
        assert worker.hot.has_started_over()
        await seek(worker)
        await feed(settings, ["e"], "x")
        await until(lambda: worker.read == [0, 1, 2, 3, 4])


async def test_nothing_is_read_between_a_seek_and_the_resumption_of_flow(settings: Settings) -> None:
    """Faust empties its agents' queues when it resumes flow: what is read before that would be lost."""
    settings = on_one_partition(settings)
    await ensure_topics(settings.kafka)
    await feed(settings, ["a"], "x")
    async with connected(settings) as consumer:
        (topic,) = consumer._hot.topics
        partition = TP(topic, 0)
        await consumer._thread.call_thread(consumer._thread._ensure_consumer().assign, [partition])
        await consumer.perform_seek()
        assert await consumer._getmany({partition}, 1.0) == {}
        consumer.resume_flow()
        (batch,) = (await consumer._getmany({partition}, 20.0))[partition]
        assert [record.offset for record in batch.value] == [0]


async def test_partitions_that_are_revoked_while_they_are_sought_stop_nobody(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that come next are sought when they have come; of those that were sought, nothing is known any more."""
    settings = on_one_partition(settings)
    await ensure_topics(settings.kafka)
    await feed(settings, ["a"], "x")
    async with connected(settings) as consumer:
        (topic,) = consumer._hot.topics
        partition = TP(topic, 0)
        thread = consumer._thread
        await thread.call_thread(thread._ensure_consumer().assign, [partition])
        await seek_on(consumer)
        assert consumer.sought == {partition}
        fetch = thread.getmany

        async def fetched_across_a_seek(active_partitions: set[TP] | None, timeout: float) -> Any:
            consumer._seeks += 1
            return await fetch(active_partitions, timeout)

        async def revoked(*_: Any) -> Any:
            raise IllegalStateError("No current assignment for partition")

        monkeypatch.setattr(thread, "getmany", fetched_across_a_seek)
        monkeypatch.setattr(thread._ensure_consumer(), "seek_to_committed", revoked)
        assert await consumer._getmany({partition}, 1.0) == {}
        assert consumer.sought == set()


async def test_a_leader_that_lags_does_not_bring_the_log_again(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    """It has not the offset that is next, and the client goes to the start of the log."""
    settings = on_one_partition(settings)
    async with running(settings) as worker:
        await feed(settings, ["a"] * 3, "x")
        await until(lambda: worker.done == 3)
        await gone_to_the_start(worker)
        await feed(settings, ["b"], "x")
        await until(lambda: worker.done == 4)
        assert worker.read == [0, 1, 2, 3]
    assert "its leader does not have offset 3 yet" in caplog.text


async def test_what_still_comes_of_it_after_a_time_is_what_there_is(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the table says to have read: it was another log."""
    monkeypatch.setattr(fetching, "LAGGING_SECONDS", -1.0)
    settings = on_one_partition(settings)
    async with running(settings) as worker:
        await feed(settings, ["a"] * 3, "x")
        await until(lambda: worker.done == 3)
        assert await worker.consumer.commit()
        await gone_to_the_start(worker)
        await until(lambda: worker.read == [0, 1, 2, 0, 1, 2])


async def gone_to_the_start(worker: TextWorker) -> None:
    """What the client does by itself where an offset is out of range."""
    thread = worker.consumer._thread
    await thread.call_thread(thread._ensure_consumer()._fetcher.seek_to, TopicPartition(worker.topic, 0), 0)
