"""Producers with transactions: what was aborted is no message, and a marker is no record that is waited for."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiokafka
import aiokafka.structs
import pytest

from schemas.settings import Settings
from schemas.topics import Topics, partition_of
from streams.app import Siltstone
from streams.doors.cli import running
from streams.forgetting.kafka_remains import remains_of
from streams.kafka.clients import log_reader
from streams.kafka.clients.broker import client_options, ensure_topics
from streams.kafka.clients.log_reader import records_between
from streams.telemetry.metrics import labelled
from tests.support.committed import committed
from tests.support.making import line
from tests.support.waiting import until

USER = "u"


@asynccontextmanager
async def transactional(settings: Settings) -> AsyncIterator[aiokafka.AIOKafkaProducer]:
    producer = aiokafka.AIOKafkaProducer(
        **client_options(settings.kafka), transactional_id=settings.kafka.group_id, transaction_timeout_ms=60_000
    )
    await producer.start()
    try:
        yield producer
    finally:
        await producer.stop()


async def said_in_transactions(settings: Settings) -> int:
    """Two messages that are aborted, four that are committed; the offset after the last marker."""
    topic = Topics.with_prefix(settings.kafka.topic_prefix).conversations
    async with transactional(settings) as producer:
        for messages, committed in ((range(2), False), (range(2, 4), True), (range(4, 6), True)):
            await producer.begin_transaction()
            for i in messages:
                await producer.send_and_wait(topic, line(i, USER, ("user", "assistant")[i % 2], i), key=USER.encode())
            await (producer.commit_transaction() if committed else producer.abort_transaction())
    return 9


def taken_in(worker: Siltstone) -> set[str]:
    return {
        message.message_id
        for partition, session in worker.intake.windows.all_sessions()
        for exchange in worker.intake.windows.window(partition, session)
        for message in exchange.messages
    } | {message.message_id for _, session in worker.intake.windows.all_sessions() for message in session.open}


async def test_aborted_messages_are_none_and_the_lag_reaches_zero(settings: Settings) -> None:
    """The last marker is committed past, so that the group's lag is zero for Kafka's own tools as well."""
    await ensure_topics(settings.kafka)
    end = await said_in_transactions(settings)
    async with running.started(settings) as worker:
        await running.until_ready(worker)
        await until(lambda: labelled(worker.metrics.messages) == {(): 4}, alive=worker)
        await until(lambda: worker.hot.lag()[worker.topics.conversations] == 0, alive=worker)
        assert taken_in(worker) == {f"{USER}-{i}" for i in range(2, 6)}
        assert labelled(worker.metrics.lost_records) == {}
    assert await committed(settings.kafka, partition_of(USER, settings.kafka.partitions)) == end


async def test_reading_back_ends_at_the_marker_and_misses_nothing(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    """Also from a marker on, up to a marker, and where there is nothing else: nobody is told of anything lost."""
    await ensure_topics(settings.kafka)
    end = await said_in_transactions(settings)
    kafka, topic = settings.kafka, Topics.with_prefix(settings.kafka.topic_prefix).conversations
    partition = partition_of(USER, kafka.partitions)
    with caplog.at_level(logging.WARNING, "streams"):
        for start, offsets in ((0, [3, 4, 6, 7]), (5, [6, 7]), (8, [])):
            read = [
                record.offset
                async for records in records_between(kafka, topic, partition, start, end)
                for record in records
            ]
            assert read == offsets
    assert [record for record in caplog.records if record.name.startswith("streams")] == []


async def test_what_is_left_of_a_user_is_listed_up_to_the_marker(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was aborted is in the log as well; nobody waits for a record behind the last one."""
    monkeypatch.setattr(log_reader, "SILENT_SECONDS", 3600.0)
    await ensure_topics(settings.kafka)
    await said_in_transactions(settings)
    topic = Topics.with_prefix(settings.kafka.topic_prefix).conversations
    assert {one.topic: one.records for one in await remains_of(settings.kafka, USER)}[topic] == 6


async def test_all_of_them_are_read_where_that_is_wished(settings: Settings) -> None:
    """`kafka.isolation_level: read_uncommitted`."""
    kafka = settings.kafka.model_copy(update={"isolation_level": "read_uncommitted"})
    settings = settings.model_copy(update={"kafka": kafka})
    await ensure_topics(kafka)
    await said_in_transactions(settings)
    async with running.started(settings) as worker:
        await running.until_ready(worker)
        await until(lambda: labelled(worker.metrics.messages) == {(): 6}, alive=worker)
