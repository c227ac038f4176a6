"""Creates a worker's topics from their specifications, and compares existing topics with these specifications."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import aiokafka.errors
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from schemas.errors import SettingsError, TopicsUnfit
from schemas.settings import KafkaSettings
from schemas.topic_specs import changelog_specs, topic_specs
from schemas.topics import Topics
from streams.kafka.clients.broker import admin_client, create_missing, ensure_topics, require_topics
from streams.kafka.topics.partition_count import disagreement
from streams.kafka.topics.rules import SpecDifference, differences, mending
from tables.database.inspection import users

log = logging.getLogger(__name__)

#: Maximum seconds for a broker to report settings of topics. Tansu closes the connection at some of these requests.
DESCRIBE_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Unfit:
    """All wrong settings of one topic (`what`), and the command that corrects them.

    If `loses`, memory would be lost with these settings, so no worker starts.
    """

    topic: str
    what: str
    command: str
    loses: bool

    def __str__(self) -> str:
        return f"topic {self.topic}: {self.what}: {self.command}"


@dataclass(frozen=True, slots=True)
class Compared:
    """The result of a comparison of the cluster's topics with their specifications.

    `unfit` has the topics with wrong settings. `untold` has the names of topics whose settings the broker does not
    report, perhaps because we lack the right DESCRIBE_CONFIGS on them.
    """

    unfit: Sequence[Unfit]
    untold: Sequence[str]


async def worker_topics(kafka: KafkaSettings, data_dir: Path | None = None, log_ms: int | None = None) -> None:
    """Create missing topics, and compare existing topics with their specifications, before a worker reads.

    Changelogs are created even if `kafka.create_topics` is false. Partition counts are checked first, because
    missing topics are created with the count in the settings. Differences that lose no memory are only logged, as
    warnings. `log_ms` is the minimum retention of `long-term` in milliseconds if checkpoints have the older events.

    Raises `TopicsUnfit` if memory would be lost; `SettingsError` if topics are missing, cannot be created, or have
    other numbers of partitions; `BrokerUnavailable`.
    """
    async with admin_client(kafka) as admin:
        counts = {topic["topic"]: len(topic["partitions"]) for topic in await admin.describe_topics()}
    if wrong := await partitions_disagree(kafka, counts, data_dir):
        raise SettingsError([wrong])
    await ensure_topics(kafka)
    if not kafka.create_topics:
        await require_topics(kafka)
    await create_missing(kafka, changelog_specs(kafka))
    async with admin_client(kafka) as admin:
        compared = await compare(admin, kafka, log_ms)
    for unfit in compared.unfit:
        if not unfit.loses:
            log.warning("%s", unfit)
    if losing := [str(unfit) for unfit in compared.unfit if unfit.loses]:
        raise TopicsUnfit(losing)


async def partitions_disagree(kafka: KafkaSettings, counts: Mapping[str, int], data_dir: Path | None) -> str | None:
    """Return a text with the wrong partition counts and their correction; None if all counts are right.

    `counts` has the partition counts of all existing topics.
    """
    specs = (*topic_specs(kafka), *changelog_specs(kafka))
    keyed = {spec.name: counts[spec.name] for spec in specs if spec.keyed and counts.get(spec.name)}
    if set(keyed.values()) == {kafka.partitions} and Topics.with_prefix(kafka.topic_prefix).long_term in keyed:
        return None
    stored = [] if data_dir is None else await asyncio.to_thread(users, data_dir)
    return disagreement(kafka, keyed, stored)


async def compare(admin: AIOKafkaAdminClient, kafka: KafkaSettings, log_ms: int | None = None) -> Compared:
    """Compare the settings of the existing topics with their specifications. Missing topics are ignored."""
    specs = {spec.name: spec for spec in (*topic_specs(kafka, log_ms), *changelog_specs(kafka))}
    described = [topic for topic in await admin.describe_topics() if topic["topic"] in specs and topic["partitions"]]
    replicas = {
        topic["topic"]: min(len(partition["replicas"]) for partition in topic["partitions"]) for topic in described
    }
    told = await settings_of(admin, list(replicas))
    found = [
        difference
        for name, spec in specs.items()
        if name in told
        for difference in differences(spec, told[name], replicas[name])
    ]
    return Compared(list(_by_topic(kafka, found)), [name for name in specs if name in replicas and name not in told])


async def settings_of(admin: AIOKafkaAdminClient, topics: Sequence[str]) -> Mapping[str, Mapping[str, str]]:
    """Return all reported settings by topic. Tansu reports only settings that were set explicitly, no defaults."""
    if not topics:
        return {}
    # The request names no settings: Tansu closes the connection if a named setting was not set.
    asked = [ConfigResource(ConfigResourceType.TOPIC, topic) for topic in topics]
    try:
        async with asyncio.timeout(DESCRIBE_SECONDS):
            answers = await admin.describe_configs(asked)
    except (aiokafka.errors.KafkaError, TimeoutError) as exc:
        log.info("the broker does not report the settings of topics (%s)", type(exc).__name__)
        return {}
    return {
        name: {entry[0]: entry[1] for entry in entries if entry[1] is not None}
        for answer in answers
        for code, _, _, name, entries in answer.resources
        if not code
    }


def _by_topic(kafka: KafkaSettings, found: Sequence[SpecDifference]) -> Iterator[Unfit]:
    for topic, of_topic in groupby(found, lambda difference: difference.topic):
        together = list(of_topic)
        loses = any(difference.loses for difference in together)
        what = "; ".join(str(difference) for difference in together)
        yield Unfit(topic, what, mending(kafka, together), loses)
