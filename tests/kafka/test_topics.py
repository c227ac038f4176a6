"""Asking for topics never makes them, not even on a cluster that makes what is asked for by its name."""

from __future__ import annotations

import asyncio
import io
import uuid
from collections.abc import Iterator
from pathlib import Path

import aiokafka.errors
import pytest
from aiokafka.admin import AIOKafkaAdminClient

from schemas.errors import BrokerUnavailable, SettingsError
from schemas.settings import KafkaSettings, Settings
from schemas.times import now_ms
from schemas.topics import Topics
from streams.doors.cli import running
from streams.doors.cli.ingest import _ingest
from streams.doors.cli.ingested import Done
from streams.doors.importing.found import Given
from streams.kafka.clients.broker import client_options, ensure_topics
from streams.kafka.clients.log_reader import end_of
from streams.kafka.clients.producing import started_producer
from streams.replay.plan import EARLIEST, NOW, ReplayOptions, planned
from tests.kafka.cluster import Cluster, cluster
from tests.kafka.source import Source


@pytest.fixture(scope="module")
def creating(source: Source) -> Iterator[Cluster]:
    with cluster(source, properties={"auto.create.topics.enable": "true"}) as brokers:
        yield brokers


@pytest.fixture
def misspelt(creating: Cluster) -> KafkaSettings:
    """A prefix that nothing has, and a worker that is not to create anything."""
    name = uuid.uuid4().hex[:8]
    return creating.settings(KafkaSettings(topic_prefix=f"{name}.", group_id=name, create_topics=False))


async def topics(kafka: KafkaSettings) -> list[str]:
    admin = AIOKafkaAdminClient(**client_options(kafka))
    await admin.start()
    try:
        return [name for name in await admin.list_topics() if name.startswith(kafka.topic_prefix)]
    finally:
        await admin.close()


async def test_a_misspelt_prefix_makes_no_topic(misspelt: KafkaSettings, settings: Settings, tmp_path: Path) -> None:
    """Worker, ingest and replay say that the topic does not exist, and leave it at that."""
    chats = b'{"user_id": "u", "session_id": "s", "role": "user", "content": "hi"}\n'
    with pytest.raises(SettingsError, match="does not exist: create it"):
        async with running.started(settings.model_copy(update={"kafka": misspelt})):
            pass
    with pytest.raises(SettingsError, match="does not exist: create it"):
        await _ingest(io.BufferedReader(io.BytesIO(chats)), "chats", Given(now_ms()), Done(), misspelt)
    asked = ReplayOptions(EARLIEST, NOW, (), True, misspelt.topic_prefix, misspelt.partitions)
    with pytest.raises(SettingsError, match="does not exist: create it"):
        await planned(asked, tmp_path / "replay", misspelt, 0)
    assert await topics(misspelt) == []


async def test_a_consumer_and_a_producer_make_no_topic_that_is_gone(misspelt: KafkaSettings) -> None:
    """A topic that is deleted beside a worker does not come back by its own clients, with one partition."""
    gone = Topics.with_prefix(misspelt.topic_prefix).long_term
    producer = await started_producer(misspelt, request_timeout_ms=2_000)
    with pytest.raises(aiokafka.errors.KafkaError):
        await producer.send_and_wait(gone, b"value")
    await producer.stop()
    with pytest.raises((BrokerUnavailable, TimeoutError)):
        async with asyncio.timeout(3):
            await end_of(misspelt, gone, 0)
    assert await topics(misspelt) == []


async def test_a_creation_that_is_refused_is_told_with_the_brokers_reason(misspelt: KafkaSettings) -> None:
    """One broker cannot keep three copies."""
    kafka = misspelt.model_copy(update={"create_topics": True, "replication": 3})
    with pytest.raises(SettingsError, match=r"is missing, and cannot be created: .*replication factor"):
        await ensure_topics(kafka)
    assert await topics(kafka) == []
