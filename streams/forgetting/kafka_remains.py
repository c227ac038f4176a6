"""Counts the records of a user that are still in Kafka. Forgetting removes no record; only Kafka's retention does."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import aiokafka
import aiokafka.errors
import orjson
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType

from schemas.settings import KafkaSettings
from schemas.topics import TABLES, Topics, changelog_of, key_of
from streams.kafka.clients.broker import admin_client, client_options, translated
from streams.kafka.clients.log_reader import ends, records_before


@dataclass(frozen=True, slots=True)
class RecordSpan:
    """The place of one record: its partition, offset and Kafka timestamp (`at`, epoch ms)."""

    partition: int
    offset: int
    at: int


@dataclass(frozen=True, slots=True)
class Remains:
    """A user's records in one topic: their number, and the oldest and the newest record.

    If `retention_ms` is -1, the topic keeps records for ever. If it is None, the broker does not report it.
    """

    topic: str
    records: int
    oldest: RecordSpan | None
    newest: RecordSpan | None
    retention_ms: int | None
    compacted: bool

    @property
    def ends_at(self) -> int | None:
        """The earliest time at which the newest record may be deleted (epoch ms).

        None if there is no record, if retention never deletes it, or if the retention is unknown.
        """
        if self.compacted or self.newest is None or self.retention_ms is None or self.retention_ms < 0:
            return None
        return self.newest.at + self.retention_ms


async def remains_of(kafka: KafkaSettings, user_id: str) -> list[Remains]:
    """Return the user's records in each existing topic of Siltstone. Raises `BrokerUnavailable`.

    This reads every record of these topics. A record belongs to the user if its key is the user's id. Dead letters
    and misrouted records may have another key; they belong to the user whose `user_id` is in their value. In the
    changelog of a table, the user's keys begin with the user's id.
    """
    names = Topics.with_prefix(kafka.topic_prefix)
    wanted = (*names.all(), *(changelog_of(kafka.group_id, table) for table in TABLES))
    try:
        async with admin_client(kafka) as admin:
            there = set(await admin.list_topics())
            topics = [name for name in wanted if name in there]
            settings = await _settings(admin, topics)
            described = await admin.describe_topics(topics)
        partitions = {one["topic"]: [part["partition"] for part in one["partitions"]] for one in described}
        return [
            await _of_topic(kafka, name, partitions.get(name, []), user_id, settings.get(name, {})) for name in topics
        ]
    except (aiokafka.errors.KafkaError, TimeoutError) as exc:
        raise await translated(kafka, exc) from exc


async def _of_topic(
    kafka: KafkaSettings, topic: str, partitions: Sequence[int], user_id: str, settings: Mapping[str, str]
) -> Remains:
    found = list[RecordSpan]()
    consumer = aiokafka.AIOKafkaConsumer(  # reads aborted records too, because they are in the log as well
        **client_options(kafka), group_id=None, enable_auto_commit=False, auto_offset_reset="earliest"
    )
    try:
        await consumer.start()
        assigned = [aiokafka.TopicPartition(topic, partition) for partition in partitions]
        consumer.assign(assigned)
        unread = {tp: end for tp, end in (await ends(consumer, assigned)).items() if end}
        if unread:
            await consumer.seek_to_beginning(*unread)
        async for fetched in records_before(consumer, unread, kafka.session_timeout_seconds):
            for tp, records in fetched.items():
                found += [RecordSpan(tp.partition, r.offset, r.timestamp) for r in records if _is_of(r, user_id)]
    finally:
        await consumer.stop()
    retention = settings.get("retention.ms")
    return Remains(
        topic,
        len(found),
        min(found, key=lambda span: span.at, default=None),
        max(found, key=lambda span: span.at, default=None),
        None if retention is None else int(retention),
        "compact" in settings.get("cleanup.policy", "") or topic.endswith("-changelog"),
    )


def _is_of(record: Any, user_id: str) -> bool:
    """True if the record contains data of the user. A tombstone of a changelog contains none."""
    if record.value is None:
        return False
    if record.key == key_of(user_id) or (record.key or b"").startswith(orjson.dumps([user_id])[:-1] + b","):
        return True
    if orjson.dumps(user_id)[1:-1] not in record.value and b"\\u" not in record.value:
        return False
    try:
        fields = orjson.loads(record.value)
    except orjson.JSONDecodeError:
        return False
    return isinstance(fields, dict) and fields.get("user_id") == user_id


async def _settings(admin: Any, topics: Sequence[str]) -> dict[str, dict[str, str]]:
    """Return the retention and cleanup policy of each topic. Topics without an answer of the broker are left out."""
    found: dict[str, dict[str, str]] = {}
    names = {"retention.ms": None, "cleanup.policy": None}
    for topic in topics:
        resource = ConfigResource(ConfigResourceType.TOPIC, topic, configs=names)
        try:
            async with asyncio.timeout(10):
                (answer,) = await admin.describe_configs([resource])
        except (aiokafka.errors.KafkaError, TimeoutError):
            continue
        for code, _, _, name, entries in answer.resources:
            if not code:
                found[name] = {entry[0]: entry[1] for entry in entries if entry[1] is not None}
    return found
