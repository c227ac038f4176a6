"""A consumer that is stopped while it fetches stops, and whoever stops it is not cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiokafka
import pytest
from aiokafka.conn import AIOKafkaConnection
from aiokafka.protocol.metadata import MetadataRequest

from schemas.settings import Settings
from schemas.topics import Topics
from streams.kafka.clients.broker import client_options, ensure_topics
from streams.kafka.clients.producing import started_producer
from streams.kafka.patches.closing import close_completely
from streams.kafka.patches.patching import patch_aiokafka


@pytest.fixture
async def consumer(settings: Settings) -> AsyncIterator[aiokafka.AIOKafkaConsumer]:
    close_completely()
    await ensure_topics(settings.kafka)
    reading = aiokafka.AIOKafkaConsumer(**client_options(settings.kafka), group_id=None, enable_auto_commit=False)
    await reading.start()
    reading.assign([aiokafka.TopicPartition(Topics.with_prefix(settings.kafka.topic_prefix).conversations, 0)])
    yield reading
    await reading.stop()


async def test_one_that_waits_to_fetch_again_after_an_error(consumer: aiokafka.AIOKafkaConsumer) -> None:
    consumer._fetcher._pending_tasks.add(asyncio.ensure_future(asyncio.sleep(3600)))
    await asyncio.sleep(0)
    await consumer.stop()
    assert [one for one in consumer._client._conns.values() if one.connected()] == []


async def test_one_that_has_only_just_started(settings: Settings) -> None:
    close_completely()
    reading = aiokafka.AIOKafkaConsumer(**client_options(settings.kafka), group_id=None, enable_auto_commit=False)
    await reading.start()
    await reading.stop()
    assert [one for one in reading._client._conns.values() if one.connected()] == []


@pytest.mark.parametrize("what", ["consumer", "producer"])
async def test_one_that_is_given_up_while_it_asks_for_the_brokers(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Its first connection closes as well."""
    patch_aiokafka()  # it is done once in a process, and compares what is replaced below
    asked, made = asyncio.Event(), list[AIOKafkaConnection]()
    send = AIOKafkaConnection.send

    def silent(self: AIOKafkaConnection, request: object, **options: bool) -> Any:
        if not isinstance(request, MetadataRequest):
            return send(self, request, **options)
        made.append(self)
        asked.set()
        return asyncio.get_running_loop().create_future()

    monkeypatch.setattr(AIOKafkaConnection, "send", silent)
    if what == "consumer":
        client = aiokafka.AIOKafkaConsumer(**client_options(settings.kafka), group_id=None, enable_auto_commit=False)
        starting = asyncio.ensure_future(client.start())
    else:
        starting = asyncio.ensure_future(started_producer(settings.kafka))
    await asked.wait()
    starting.cancel()
    await asyncio.wait([starting])
    if what == "consumer":
        await client.stop()
    assert [connection.connected() for connection in made] == [False]
