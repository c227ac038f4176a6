"""What a worker may not do is tried without a trace, and told by right and resource."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import AsyncIterator

import aiokafka
import pytest
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from schemas.rights import Right, group_right, topic_rights
from schemas.settings import KafkaSettings
from schemas.topic_specs import tokens_spec
from schemas.topics import TABLES, changelog_of
from streams.access.token_log import kept_tokens
from streams.kafka.access.rights import try_rights
from tests.kafka.acls import grant
from tests.kafka.secured import USER, Secured

GIVEN = KafkaSettings(topic_prefix="", group_id="group")
CHANGELOGS = frozenset(changelog_of("group", table) for table in TABLES)
ALL = [*(right for of in topic_rights(GIVEN, CHANGELOGS).values() for right in of), group_right(GIVEN)]


def fresh(safe: Secured, **changes: object) -> tuple[KafkaSettings, frozenset[str]]:
    name = uuid.uuid4().hex[:8]
    kafka = safe.settings(KafkaSettings(topic_prefix=f"{name}.", group_id=name), "SASL")
    return kafka.model_copy(update=changes), frozenset(changelog_of(name, table) for table in TABLES)


@contextlib.asynccontextmanager
async def administrator(safe: Secured) -> AsyncIterator[AIOKafkaAdminClient]:
    admin = AIOKafkaAdminClient(bootstrap_servers=safe.brokers.inside)
    await admin.start()
    try:
        yield admin
    finally:
        await admin.close()


def rights_of(kafka: KafkaSettings, changelogs: frozenset[str]) -> list[Right]:
    return [*(right for of in topic_rights(kafka, changelogs).values() for right in of), group_right(kafka)]


async def create(safe: Secured, kafka: KafkaSettings, changelogs: frozenset[str]) -> None:
    async with administrator(safe) as admin:
        topics = [NewTopic(name, kafka.partitions, 1) for name in topic_rights(kafka, changelogs)]
        await admin.create_topics(topics)


@pytest.mark.parametrize("number", range(len(ALL)), ids=map(str, ALL))
async def test_the_right_that_is_missing_is_found(safe: Secured, number: int) -> None:
    kafka, changelogs = fresh(safe)
    await create(safe, kafka, changelogs)
    rights = rights_of(kafka, changelogs)
    missing = rights.pop(number)
    await grant(safe.brokers, USER, rights)
    tried = await try_rights(kafka, changelogs)
    assert (list(tried.missing), list(tried.absent)) == ([missing], [])


async def test_nothing_is_missing_where_all_is_given(safe: Secured) -> None:
    kafka, changelogs = fresh(safe)
    await create(safe, kafka, changelogs)
    await grant(safe.brokers, USER, rights_of(kafka, changelogs))
    assert list((await try_rights(kafka, changelogs)).missing) == []


async def test_who_asks_for_tokens_needs_to_read_their_topic(safe: Secured) -> None:
    """And writes none: that is for who makes tokens."""
    kafka, changelogs = fresh(safe)
    name = tokens_spec(kafka).name
    async with administrator(safe) as admin:
        await admin.create_topics([NewTopic(name, 1, 1)])
    await create(safe, kafka, changelogs)
    await grant(safe.brokers, USER, rights_of(kafka, changelogs))
    assert list((await try_rights(kafka, changelogs)).missing) == []
    reading = Right("READ", "topic", name)
    assert list((await try_rights(kafka, changelogs, tokens=True)).missing) == [reading]
    await grant(safe.brokers, USER, [reading])
    assert list((await try_rights(kafka, changelogs, tokens=True)).missing) == []
    assert await kept_tokens(kafka) == []


async def test_trying_leaves_no_trace(safe: Secured) -> None:
    """No record, no topic, no group; of what is not there, only the creation is tried."""
    kafka, changelogs = fresh(safe)
    rights = rights_of(kafka, changelogs)
    await grant(safe.brokers, USER, rights)
    there = topic_rights(kafka, frozenset())
    async with administrator(safe) as admin:
        await admin.create_topics([NewTopic(name, 1, 1) for name in there])
        tried = await try_rights(kafka, changelogs)
        assert set(tried.absent) == changelogs
        assert set(tried.missing) == {Right("CREATE", "topic", name) for name in changelogs}
        await grant(safe.brokers, USER, tried.missing)
        assert list((await try_rights(kafka, changelogs)).missing) == []
        assert {name for name in await admin.list_topics() if name.startswith(kafka.group_id)} == set(there)
        assert kafka.group_id not in {group for group, *_ in await admin.list_consumer_groups()}
    consumer = aiokafka.AIOKafkaConsumer(bootstrap_servers=safe.brokers.inside)
    await consumer.start()
    try:
        ends = await consumer.end_offsets([aiokafka.TopicPartition(name, 0) for name in there])
        assert set(ends.values()) == {0}
    finally:
        await consumer.stop()


async def test_topics_that_are_to_be_made_by_somebody_else_need_no_right_to_create(safe: Secured) -> None:
    kafka, _ = fresh(safe, create_topics=False)
    await grant(safe.brokers, USER, rights_of(kafka, frozenset()))
    tried = await try_rights(kafka, frozenset())
    assert (list(tried.missing), len(tried.absent)) == ([], 5)
