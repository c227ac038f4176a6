"""Somebody sets the group's offsets while no worker runs: what is passed over is told, with its place and time."""

from __future__ import annotations

import aiokafka
import httpx
import pytest

from schemas.settings import Settings
from schemas.topics import Topics, partition_of
from streams.app import Siltstone
from streams.doors.cli import running
from streams.kafka.clients.broker import client_options
from streams.telemetry.metrics import labelled
from tests.support.waiting import CLIENT_SECONDS, until
from tests.worker.test_losses import USER, read_some, say, told


async def set_offset(settings: Settings, offset: int) -> None:
    """As `kafka-consumer-groups --reset-offsets` does."""
    kafka = settings.kafka
    topic = Topics.with_prefix(kafka.topic_prefix).conversations
    partition = aiokafka.TopicPartition(topic, partition_of(USER, kafka.partitions))
    consumer = aiokafka.AIOKafkaConsumer(group_id=kafka.group_id, enable_auto_commit=False, **client_options(kafka))
    await consumer.start()
    try:
        consumer.assign([partition])
        await consumer.commit({partition: offset})
    finally:
        await consumer.stop()


async def lost(worker: Siltstone) -> object:
    async with httpx.AsyncClient(trust_env=False, timeout=CLIENT_SECONDS) as client:
        return (await client.get(f"http://127.0.0.1:{worker.api.port}/v1/stats/pipeline")).json()["lost_records"]


async def test_offsets_that_are_set_past_the_lag_are_told(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    """Six of ten are passed over: one line with topic, partition, offsets and time, a counter, and a figure."""
    await read_some(settings)
    await say(settings, range(4, 14))
    await set_offset(settings, 10)
    async with running.started(settings) as worker:
        await running.until_ready(worker)
        await until(lambda: labelled(worker.metrics.messages) == {(): 4}, alive=worker)
        topic = worker.topics.conversations
        await until(lambda: told(caplog), alive=worker)
        assert await lost(worker) == {topic: 6}
        await until(lambda: worker.hot.lag()[topic] == 0, alive=worker)
    (said,) = told(caplog)
    where = f"{topic}[{partition_of(USER, settings.kafka.partitions)}]"
    assert said.startswith(f"{where}: offsets 4 to 9 were skipped unread: the group's offset was set to 10 by")
    assert " is of 20" in said
    caplog.clear()
    async with running.started(settings) as worker:
        await running.until_ready(worker)
    assert told(caplog) == []


async def test_offsets_that_are_set_back_lose_and_double_nothing(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    await read_some(settings)
    await set_offset(settings, 1)
    async with running.started(settings) as worker:
        await running.until_ready(worker)
        await until(lambda: worker.hot.lag()[worker.topics.conversations] == 0, alive=worker)
        assert sum(labelled(worker.metrics.messages).values()) == 0
    assert told(caplog) == []
