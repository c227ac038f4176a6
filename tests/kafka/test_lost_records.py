"""Records that were deleted before they were read: told, counted, and told once."""

from __future__ import annotations

import aiokafka.structs
import httpx
import pytest
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from schemas.settings import Settings
from schemas.topics import Topics, partition_of
from streams.app import Siltstone
from streams.doors.cli import running
from streams.kafka.bulk import producing
from streams.kafka.clients.broker import client_options, ensure_topics
from streams.kafka.clients.log_reader import end_of
from streams.telemetry.metrics import labelled
from tests.support.making import line
from tests.support.waiting import CLIENT_SECONDS, until

USER = "u"


async def say(settings: Settings, messages: range) -> None:
    async with producing(settings.kafka) as producer:
        for i in messages:
            await producer.send(USER.encode(), line(i, USER, ("user", "assistant")[i % 2], i))


async def delete_before(settings: Settings, offset: int, topic: str = "") -> None:
    """In the user's partition of the topic, or of `conversations`."""
    kafka = settings.kafka
    topic = topic or Topics.with_prefix(kafka.topic_prefix).conversations
    partition = aiokafka.structs.TopicPartition(topic, partition_of(USER, kafka.partitions))
    admin = AIOKafkaAdminClient(**client_options(kafka))
    await admin.start()
    try:
        await admin.delete_records({partition: RecordsToDelete(before_offset=offset)})
    finally:
        await admin.close()


async def read_some(settings: Settings) -> None:
    """A worker reads messages 0 to 3, commits that, and is stopped: a commit at the end may come too late."""
    await ensure_topics(settings.kafka)
    await say(settings, range(4))
    async with running.started(settings) as worker:
        await running.until_ready(worker)
        await until(lambda: labelled(worker.metrics.messages) == {(): 4}, alive=worker)
        await until(lambda: sum(worker.hot.committed(worker.topics.conversations).values()) == 4, alive=worker)


def lost(worker: Siltstone) -> float:
    return sum(labelled(worker.metrics.lost_records).values())


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [message for message in caplog.messages if "deleted before they were read" in message]


async def test_what_was_deleted_ahead_of_the_committed_offset_is_told_with_its_place(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    """Six of ten are gone: one line with topic, partition and offsets, a counter, and a figure of the pipeline."""
    await read_some(settings)
    await say(settings, range(4, 14))
    await delete_before(settings, 10)
    async with running.started(settings) as worker:
        await running.until_ready(worker)
        await until(lambda: labelled(worker.metrics.messages) == {(): 4}, alive=worker)
        topic = worker.topics.conversations
        where = f"{topic}[{partition_of(USER, settings.kafka.partitions)}]"
        assert labelled(worker.metrics.lost_records) == {(topic,): 6}
        async with httpx.AsyncClient(trust_env=False, timeout=CLIENT_SECONDS) as client:
            pipeline = await client.get(f"http://127.0.0.1:{worker.api.port}/v1/stats/pipeline")
        assert pipeline.json()["lost_records"] == {topic: 6}
    (line_of_it,) = told(caplog)
    assert line_of_it.startswith(f"{where}: offsets 4 to 9 were deleted before they were read; the oldest")


async def test_it_is_told_once_and_where_nothing_is_left_as_well(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    await read_some(settings)
    await say(settings, range(4, 6))
    await delete_before(settings, 6)
    async with running.started(settings) as worker:
        await running.until_ready(worker)
        await until(lambda: lost(worker) == 2, alive=worker)
        await until(lambda: worker.hot.lag()[worker.topics.conversations] == 0, alive=worker)
    async with running.started(settings) as worker:
        await running.until_ready(worker)
        await say(settings, range(6, 8))
        await until(lambda: labelled(worker.metrics.messages) == {(): 2}, alive=worker)
        assert lost(worker) == 0
    assert len(told(caplog)) == 1


async def test_a_new_group_has_lost_nothing(settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    """What was deleted before it began was not for it."""
    await ensure_topics(settings.kafka)
    await say(settings, range(4))
    await delete_before(settings, 2)
    async with running.started(settings) as worker:
        await running.until_ready(worker)
        await until(lambda: labelled(worker.metrics.messages) == {(): 2}, alive=worker)
        assert lost(worker) == 0
    assert told(caplog) == []


async def end_of_changelog(settings: Settings, table: str) -> tuple[str, int]:
    topic = f"{settings.kafka.group_id}-{table}-changelog"
    return topic, await end_of(settings.kafka, topic, partition_of(USER, settings.kafka.partitions))


async def compact(settings: Settings, topic: str, policy: str) -> None:
    """Kafka deletes records of a topic by hand where its policy deletes them."""
    admin = AIOKafkaAdminClient(**client_options(settings.kafka))
    await admin.start()
    try:
        await admin.alter_configs(
            [ConfigResource(ConfigResourceType.TOPIC, topic, configs={"cleanup.policy": policy})]
        )
    finally:
        await admin.close()


async def test_emptied_changelogs_are_told(settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    """Windows that were there are gone: one line for each changelog, a counter, a figure of the pipeline."""
    await read_some(settings)
    ends = dict([await end_of_changelog(settings, table) for table in ("exchanges", "sessions")])
    for topic, end in ends.items():
        await compact(settings, topic, "delete")
        await delete_before(settings, end, topic)
        await compact(settings, topic, "compact")
    async with running.started(settings) as worker:
        await running.until_ready(worker)
        async with httpx.AsyncClient(trust_env=False, timeout=CLIENT_SECONDS) as client:
            pipeline = (await client.get(f"http://127.0.0.1:{worker.api.port}/v1/stats/pipeline")).json()
        assert pipeline["emptied_changelogs"] == dict.fromkeys(ends, 1)
        assert pipeline["lost_records"] == ends
    said = [record.getMessage() for record in caplog.records if record.name == "streams.kafka.losses"]
    partition = partition_of(USER, settings.kafka.partitions)
    assert sorted(line.split(" of ")[0] for line in said) == [
        f"{topic}[{partition}]: restored 0 rows although offset 4" for topic in sorted(ends)
    ]
