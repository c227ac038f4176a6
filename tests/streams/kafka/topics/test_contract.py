"""A worker's topics on a broker that tells only what was set: created as they must be, compared as far as told."""

from __future__ import annotations

import pytest
from aiokafka.admin import NewTopic

from schemas.errors import SettingsError, TopicsUnfit
from schemas.settings import CheckpointsSettings, Settings
from schemas.topic_specs import changelog_specs, topic_specs
from schemas.topics import SESSIONS, Topics, changelog_of
from streams.app import Siltstone
from streams.kafka.clients.broker import admin_client
from streams.kafka.topics.contract import compare, settings_of, worker_topics


async def made_otherwise(settings: Settings, topic: str, configs: dict[str, str]) -> None:
    async with admin_client(settings.kafka) as admin:
        await admin.create_topics([NewTopic(topic, settings.kafka.partitions, 1, topic_configs=configs)])


async def test_topics_are_created_by_their_specs(settings: Settings) -> None:
    await worker_topics(settings.kafka)
    specs = (*topic_specs(settings.kafka), *changelog_specs(settings.kafka))
    async with admin_client(settings.kafka) as admin:
        told = await settings_of(admin, [spec.name for spec in specs])
        assert all(told[spec.name].items() >= spec.configs().items() for spec in specs)
        assert (await compare(admin, settings.kafka)).unfit == []


def test_the_changelogs_that_are_created_are_those_of_the_tables(settings: Settings) -> None:
    assert Siltstone(settings).hot.changelogs == {spec.name for spec in changelog_specs(settings.kafka)}


async def test_a_changelog_that_deletes_is_refused_with_the_command(settings: Settings) -> None:
    """A restart would show no exchange, and be ready."""
    topic = changelog_of(settings.kafka.group_id, SESSIONS)
    await made_otherwise(settings, topic, {"cleanup.policy": "delete"})
    with pytest.raises(TopicsUnfit) as refused:
        await worker_topics(settings.kafka)
    (problem,) = refused.value.problems
    assert problem.startswith(f"topic {topic}: cleanup.policy is delete: ")
    assert problem.endswith(f"--entity-name {topic} --add-config cleanup.policy=compact")


async def test_what_is_wrong_and_loses_nothing_is_warned_of(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    topic = Topics.with_prefix(settings.kafka.topic_prefix).conversations
    await made_otherwise(settings, topic, {"retention.ms": "60000"})
    await worker_topics(settings.kafka)
    (line,) = [message for message in caplog.messages if topic in message]
    assert line.endswith("--add-config retention.ms=86400000")


async def test_topics_of_which_nothing_is_told_are_taken_as_they_are(settings: Settings) -> None:
    topic = Topics.with_prefix(settings.kafka.topic_prefix).long_term
    await made_otherwise(settings, topic, {})
    await worker_topics(settings.kafka)


async def test_another_number_of_partitions_is_told_once_before_anything_is_created(settings: Settings) -> None:
    names = Topics.with_prefix(settings.kafka.topic_prefix)
    await made_otherwise(settings, names.long_term, {})
    there = settings.kafka.partitions
    kafka = settings.kafka.model_copy(update={"partitions": 3})
    with pytest.raises(SettingsError) as refused:
        await worker_topics(kafka, settings.data_dir)
    (problem,) = refused.value.problems
    assert problem.startswith(f"kafka.partitions is 3, and {names.long_term} has {there}: {there} is the right")
    assert problem.endswith(f"; set kafka.partitions to {there}")
    async with admin_client(kafka) as admin:
        assert [name for name in await admin.list_topics() if name.startswith(kafka.topic_prefix)] == [
            names.long_term
        ]


async def test_a_short_log_is_taken_with_checkpoints_and_refused_without(settings: Settings) -> None:
    log_ms = CheckpointsSettings(url="file:///checkpoints").log_ms
    topic = Topics.with_prefix(settings.kafka.topic_prefix).long_term
    await made_otherwise(settings, topic, {"retention.ms": str(log_ms)})
    await worker_topics(settings.kafka, log_ms=log_ms)
    with pytest.raises(TopicsUnfit) as refused:
        await worker_topics(settings.kafka)
    (problem,) = refused.value.problems
    assert problem.endswith("--add-config retention.ms=-1")
