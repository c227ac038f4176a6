"""Topics that are others than those that a worker began with: by id, by number of partitions, or gone."""

from __future__ import annotations

import errno
import logging
import os
import uuid
from collections.abc import AsyncIterator
from pathlib import Path

import orjson
import pytest

from schemas.errors import BrokerEmptied, DataDirError, PartitionsChanged, TopicsRemade
from schemas.settings import Settings
from schemas.topics import Topics
from streams.kafka.clients.broker import admin_client, ensure_topics
from streams.kafka.topics.contract import worker_topics
from streams.kafka.topics.ids import GONE, Identity, identities
from streams.kafka.topics.watch import LOOKS, LOOKS_GONE, TopicWatch, changed
from tables import paths

ONE, OTHER = uuid.UUID(int=1), uuid.UUID(int=2)


def test_another_id_is_another_topic_whatever_else_has_changed() -> None:
    found = changed({"t": Identity(ONE, 4), "u": Identity(ONE, 4)}, {"t": Identity(OTHER, 1), "u": GONE}, {"t", "u"})
    assert isinstance(found, TopicsRemade)
    assert found.topics == ["t"]


def test_added_partitions_count_where_users_are_keyed() -> None:
    before, now = {"t": Identity(ONE, 4)}, {"t": Identity(ONE, 6)}
    found = changed(before, now, {"t"})
    assert isinstance(found, PartitionsChanged)
    assert (found.topic, found.partitions, found.before) == ("t", 6, 4)
    assert changed(before, now, ()) is None


def test_a_topic_that_is_gone_is_told_and_one_of_which_nothing_is_said_is_not() -> None:
    before = {"t": Identity(ONE, 4), "u": Identity(ONE, 4)}
    found = changed(before, {"t": GONE}, {"t", "u"})
    assert isinstance(found, BrokerEmptied)
    assert found.topics == ["t"]
    assert changed(before, {}, {"t", "u"}) is None


def test_without_ids_the_numbers_alone_are_compared() -> None:
    assert changed({"t": Identity(None, 4)}, {"t": Identity(None, 4)}, {"t"}) is None
    assert isinstance(changed({"t": Identity(None, 4)}, {"t": Identity(None, 5)}, {"t"}), PartitionsChanged)


@pytest.fixture
async def watch(settings: Settings, tmp_path: Path) -> AsyncIterator[TopicWatch]:
    await worker_topics(settings.kafka)
    watch = TopicWatch(settings.kafka, tmp_path / "topics.json")
    assert await watch.begin() == frozenset()
    yield watch
    await watch.close()


async def delete(settings: Settings, topic: str) -> None:
    async with admin_client(settings.kafka) as admin:
        await admin.delete_topics([topic])


async def test_a_broker_tells_ids_and_makes_nothing_that_is_asked_for(settings: Settings) -> None:
    await ensure_topics(settings.kafka)
    names = Topics.with_prefix(settings.kafka.topic_prefix)
    async with admin_client(settings.kafka) as admin:
        found = await identities(admin, [*names.all(), f"{names.long_term}er"])
        assert found.pop(f"{names.long_term}er") == GONE
        assert len({identity.id for identity in found.values()} - {None}) == len(names.all())
        assert {identity.partitions for identity in found.values()} == {settings.kafka.partitions}
        assert f"{names.long_term}er" not in await admin.list_topics()


async def test_a_topic_that_was_made_anew_is_noticed_at_the_second_look(
    watch: TopicWatch, settings: Settings
) -> None:
    """One broker of several may hear of it later than the others: what one look shows is not yet so."""
    names = Topics.with_prefix(settings.kafka.topic_prefix)
    await watch.look()
    await delete(settings, names.summary_requests)
    await ensure_topics(settings.kafka)
    for _ in range(LOOKS - 1):
        await watch.look()
    with pytest.raises(TopicsRemade) as remade:
        await watch.look()
    assert remade.value.topics == [names.summary_requests]


async def test_a_topic_that_is_gone_is_given_time_to_come_back(watch: TopicWatch, settings: Settings) -> None:
    names = Topics.with_prefix(settings.kafka.topic_prefix)
    await delete(settings, names.conversations)
    for _ in range(LOOKS_GONE - 1):
        await watch.look()
    with pytest.raises(BrokerEmptied, match="conversations"):
        await watch.look()


async def test_topics_that_were_made_anew_between_two_starts_are_told(
    watch: TopicWatch, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    """At each start until the worker has begun with them: a group's offset may be of the former one until then."""
    names = Topics.with_prefix(settings.kafka.topic_prefix)
    await delete(settings, names.long_term)
    await ensure_topics(settings.kafka)
    with caplog.at_level(logging.INFO):
        for _ in range(2):
            assert await watch.begin() == {names.long_term}
        await watch.note()
        assert await watch.begin() == frozenset()
    (told, _) = [record for record in caplog.records if record.name == "streams.kafka.topics.watch"]
    assert (told.levelname, names.long_term in told.message, names.dead_letters in told.message) == (
        "WARNING",
        True,
        False,
    )


async def test_a_disk_with_no_room_for_the_ids_leaves_those_that_were_noted(
    watch: TopicWatch, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker stops, and says so; the next one knows that its offsets are of the former topics."""
    names = Topics.with_prefix(settings.kafka.topic_prefix)
    await delete(settings, names.long_term)
    await ensure_topics(settings.kafka)
    assert await watch.begin() == {names.long_term}

    def full(_: Path) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(paths, "synced", full)
        with pytest.raises(DataDirError, match="No space left on device"):
            await watch.note()
    assert await watch.begin() == {names.long_term}


async def test_another_broker_is_no_news_of_single_topics(
    watch: TopicWatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The embedded one has new topics at every start."""
    noted = tmp_path / "topics.json"
    noted.write_bytes(orjson.dumps(dict.fromkeys(orjson.loads(noted.read_bytes()), str(ONE))))
    with caplog.at_level(logging.INFO):
        assert len(await watch.begin()) == len(orjson.loads(noted.read_bytes()))
    (told,) = [record for record in caplog.records if record.name == "streams.kafka.topics.watch"]
    assert told.levelname == "INFO"
