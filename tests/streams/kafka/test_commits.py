"""An offset is committed when the broker has all that its records caused."""

from __future__ import annotations

import asyncio
from typing import Any

import aiokafka
import aiokafka.errors
import aiokafka.structs
import pytest
from faust.types import TP

from schemas.settings import Settings
from streams.kafka.clients.broker import client_options
from streams.kafka.clients.log_reader import ends
from streams.kafka.commit.marks import MARK
from streams.kafka.commit.sends import Producer
from tests.streams.kafka.worker import changelog_of, feed, on_one_partition, running
from tests.support.committed import committed
from tests.support.waiting import until


class Refusing:
    """The worker's producer, whose broker does not take batches as long as it is `refusing`."""

    def __init__(self, producer: Producer) -> None:
        self._producer, self.refusing = producer, True
        self.create_batch, self.send = producer.create_batch, producer.send

    async def send_batch(self, batch: Any, topic: str, *, partition: int) -> asyncio.Future[Any]:
        if not self.refusing:
            return await self._producer.send_batch(batch, topic, partition=partition)
        refused = asyncio.get_running_loop().create_future()
        refused.set_exception(aiokafka.errors.NotEnoughReplicasError())
        return refused


async def test_no_offset_is_committed_before_the_changelog_has_the_values(settings: Settings) -> None:
    """A refused changelog leaves the broker's offset alone; the next attempt writes the values, and commits."""
    settings = on_one_partition(settings)
    async with running(settings) as worker:
        assert worker.hot.outbox._producer is not None
        producer = Refusing(worker.hot.outbox._producer)
        worker.hot.outbox.connect(producer)
        await feed(settings, ["a", "b"], "x")
        await until(lambda: worker.done == 2)
        for _ in range(2):
            assert not await worker.consumer.commit()
            assert await committed(settings.kafka, 0) is None

        producer.refusing = False
        assert await worker.consumer.commit()
        assert await committed(settings.kafka, 0) == 2
        assert await rows_of(settings, changelog_of(settings)) == [(b"a", b"x"), (b"b", b"x")]


async def test_a_worker_that_the_group_does_not_know_writes_no_rows(settings: Settings) -> None:
    """It was paused, and its partition's next owner has written newer ones."""
    settings = on_one_partition(settings)
    async with running(settings) as worker:
        await feed(settings, ["a"], "x")
        await until(lambda: worker.done == 1)
        coordinator = worker.consumer._thread._ensure_consumer()._coordinator
        coordinator.member_id = "of-another-time"
        assert not await worker.consumer.commit()
        assert await committed(settings.kafka, 0) is None
        await until(lambda: worker.read == [0, 0])  # it has joined again
        await until(lambda: worker.done == 1)
        assert await worker.consumer.commit()
        assert await rows_of(settings, changelog_of(settings)) == [(b"a", b"x")]


async def test_an_offset_that_the_group_refused_does_not_count_as_committed(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a broker that knows a smaller one would be taken for one that has lost its log."""
    settings = on_one_partition(settings)
    async with running(settings) as worker:
        await feed(settings, ["a"], "x")
        await until(lambda: worker.done == 1)
        assert await worker.consumer.commit()
        await feed(settings, ["a"], "x")
        await until(lambda: worker.done == 2)

        async def refuse(offsets: Any) -> None:
            raise aiokafka.errors.CommitFailedError("the group has already rebalanced")

        with monkeypatch.context() as patch:
            patch.setattr(worker.consumer._thread._ensure_consumer(), "commit", refuse)
            assert not await worker.consumer.commit()
        assert await worker.hot.forgotten() == []
        assert await worker.consumer.commit()
        assert await committed(settings.kafka, 0) == 2


async def rows_of(settings: Settings, changelog: TP) -> list[tuple[bytes, bytes | None]]:
    """All rows of a partition, but for marks."""
    consumer = aiokafka.AIOKafkaConsumer(auto_offset_reset="earliest", **client_options(settings.kafka))
    await consumer.start()
    try:
        partition = aiokafka.structs.TopicPartition(*changelog)
        consumer.assign([partition])
        end = (await ends(consumer, [partition]))[partition]
        await consumer.seek_to_beginning(partition)
        found: list[Any] = []
        while await consumer.position(partition) < end:
            found += (await consumer.getmany(partition, timeout_ms=100)).get(partition, [])
        return [(record.key, record.value) for record in found if not record.key.startswith(MARK)]
    finally:
        await consumer.stop()
