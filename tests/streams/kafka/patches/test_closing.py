"""A client that is stopped at any moment stops, closes its connections, and cancels nobody who stops it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import aiokafka
import pytest
from aiokafka.conn import AIOKafkaConnection
from aiokafka.protocol.metadata import MetadataRequest

from schemas.settings import Settings
from schemas.topics import Topics
from streams.kafka.clients.broker import admin_client, client_options, ensure_topics
from streams.kafka.clients.log_reader import bounds_of
from streams.kafka.clients.producing import started_producer
from streams.kafka.patches.closing import close_completely
from streams.kafka.patches.patching import patch_aiokafka
from tests.support.waiting import until


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


async def in_a_group(settings: Settings, topic: str) -> None:
    options: dict[str, Any] = {**client_options(settings.kafka), "group_id": "g", "enable_auto_commit": False}
    reading = aiokafka.AIOKafkaConsumer(topic, **options)
    try:
        await reading.start()
        await reading.getmany(timeout_ms=20)
    finally:
        await reading.stop()


async def producing(settings: Settings, topic: str) -> None:
    made = await started_producer(settings.kafka)
    try:
        await made.send_and_wait(topic, b"x")
    finally:
        await made.stop()


async def asking(settings: Settings, topic: str) -> None:
    async with admin_client(settings.kafka) as admin:
        await admin.describe_topics([topic])


async def looking(settings: Settings, topic: str) -> None:
    await bounds_of(settings.kafka, topic, 0)


#: More turns of the event loop than any of these takes until it waits for nothing but the broker.
TURNS = 72


@pytest.mark.slow
@pytest.mark.parametrize("again", [0, 1, 5], ids=lambda turns: f"again after {turns}" if turns else "once")
@pytest.mark.parametrize("use", [in_a_group, producing, asking, looking])
async def test_one_that_is_cancelled_at_any_moment_leaves_no_connection(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, use: Callable[[Settings, str], Awaitable[None]], again: int
) -> None:
    """Nor if it is cancelled again while it stops, as it is by a worker that ends."""
    patch_aiokafka()
    await ensure_topics(settings.kafka)
    topic, made = Topics.with_prefix(settings.kafka.topic_prefix).conversations, list[AIOKafkaConnection]()
    connect = AIOKafkaConnection.connect

    async def noted(self: AIOKafkaConnection) -> Any:
        made.append(self)
        return await connect(self)

    monkeypatch.setattr(AIOKafkaConnection, "connect", noted)
    for turns in range(TURNS):
        using = asyncio.ensure_future(use(settings, topic))
        for turn in range(turns):
            await asyncio.sleep(0)
            if turn > TURNS // 2:  # by then, it waits for the broker
                await asyncio.sleep(0.001)
        using.cancel()
        for _ in range(again):
            await asyncio.sleep(0)
            using.cancel()
        await asyncio.wait([using])
        # A connection closes in the loop's next turns, of which there are few in a moment on a busy machine.
        await until(lambda: not any(connection.connected() for connection in made))
    assert len(made) > TURNS // 2
