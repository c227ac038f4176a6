"""What cleanup asks for, and how often; and what becomes of it in the shard."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from schemas.errors import ShardNotHere
from schemas.events import LONG_TERM_EVENT, Archive, LongTermEvent, Pin, Remove, Restore, Touch, Unpin
from schemas.lifecycle import DAY_MS
from schemas.settings import CleanupSettings, LifecycleSettings, LongTermSettings
from schemas.topics import Topics, partition_of
from streams.kafka.commit.outbox import Outbox
from streams.kafka.event_log import EventLog
from streams.memory import cleanup
from streams.memory.cleanup import CleanupJob
from streams.memory.lifecycle import LifecycleJob
from streams.runtime.clock import EventClock
from streams.shards.owned import OwnedShards
from streams.telemetry.metrics import Metrics, labelled
from tables.memories.shard import Shard
from tests.streams.kafka.commit.test_outbox import Broker
from tests.streams.memory.test_analytics import Toy
from tests.support.making import START, axis, promotion, some_id
from tests.support.waiting import until

TOPICS = Topics.with_prefix("t.")
#: A memory of importance 60 that nobody has accessed is deprecated after 22 days, and goes after 52.
DUE = START + 53 * DAY_MS


class Setting:
    """An agent over two shards, and the log that it writes to."""

    def __init__(self, data: Path, **cleanup_settings: Any) -> None:
        self.broker, self.metrics, self.clock, self.data = Broker(), Metrics(), EventClock(DUE), data
        self.shards = OwnedShards(data, LongTermSettings(), LifecycleSettings(), Toy(), lambda exc, where: None)
        self.shards.own(frozenset({0, 1}))
        self.outbox = Outbox()
        self.outbox.connect(self.broker)
        self.read, self.kept = 0, 0
        self.agent = self.with_settings(**{"enabled": True, **cleanup_settings})

    def with_settings(self, **settings: Any) -> CleanupJob:
        return CleanupJob(
            shards=self.shards,
            event_log=EventLog(self.outbox, TOPICS),
            metrics=self.metrics,
            partitions=2,
            lifecycle=LifecycleSettings(cleanup=CleanupSettings(**settings)),
        )

    def lifecycle(self) -> LifecycleJob:
        return LifecycleJob(
            shards=self.shards,
            outbox=self.outbox,
            metrics=self.metrics,
            clock=self.clock,
            topics=TOPICS,
            lifecycle=LifecycleSettings(),
        )

    async def tick(self, agent: CleanupJob | None = None) -> None:
        """As the worker's timer does it."""
        await (agent or self.agent).tick(await self.lifecycle().recompute())

    async def apply(self, *events: LongTermEvent) -> dict[str, int]:
        effects: dict[str, int] = {}
        for event in events:
            vectors = {event.event_id: axis(self.kept % 8)}
            partition = partition_of(event.user_id, 2)
            effects |= (await self.shards.call(partition, Shard.apply, [event], vectors, self.clock.now())).effects()
        return effects

    async def keep(self, name: str, user: str = "u", importance: float = 60) -> dict[str, Any]:
        """A memory that nobody needs, like no other; what commands about it have in common."""
        self.kept += 1
        event = promotion(name, name, user=user, importance=importance)
        await self.apply(event)
        return {"user_id": user, "memory_id": event.memory_id}

    def asked(self) -> list[LongTermEvent]:
        """What has come into the log since the last time."""
        new, self.read = self.broker.log[self.read :], len(self.broker.log)
        new = [record for record in new if record[0] == TOPICS.long_term]
        events = [LONG_TERM_EVENT.validate_json(value or b"") for *_, value in new]
        assert [key for _, _, key, _ in new] == [event.user_id.encode() for event in events]
        return events

    async def counts(self, user: str = "u") -> tuple[int, int]:
        """Memories here, and in the archive."""
        partition = partition_of(user, 2)
        here = await self.shards.call(partition, Shard.memories_of, user)
        return len(here), len(await self.shards.call(partition, lambda shard: shard.archive.listed(user)))


@contextlib.asynccontextmanager
async def opened(data: Path) -> AsyncIterator[Setting]:
    made = Setting(data)
    await until(lambda: made.shards.ready)
    yield made
    await made.shards.close()


@pytest.fixture
async def setting(tmp_path: Path) -> AsyncIterator[Setting]:
    async with opened(tmp_path) as made:
        yield made


def of_now(kind: type[Any], about: dict[str, Any], at: int = DUE) -> Any:
    return kind(event_id=some_id(), timestamp=at, **about)


@pytest.mark.slow
async def test_what_is_due_is_asked_for_once_and_moves_when_it_comes_back(setting: Setting) -> None:
    """The shard is left alone until then; an event that was sent twice counts once."""
    about = await setting.keep("a")
    await setting.tick()
    await setting.tick()
    (event,) = setting.asked()
    assert isinstance(event, Archive)
    assert (event.memory_id, event.reason, event.timestamp) == (about["memory_id"], "cleanup", DUE)
    assert (event.last_accessed, await setting.counts()) == (START, (1, 0))
    assert await setting.apply(event) == {"archived": 1}
    assert await setting.apply(event) == {"repeated": 1}
    await setting.tick()
    assert (setting.asked(), await setting.counts()) == ([], (0, 1))
    assert labelled(setting.metrics.cleanup) == {("archived",): 1}


@pytest.mark.slow
async def test_another_worker_asks_by_the_same_event_id(setting: Setting) -> None:
    await setting.keep("a")
    await setting.tick()
    await setting.tick(setting.with_settings(enabled=True))
    one, other = setting.asked()
    assert one.event_id == other.event_id


@pytest.mark.parametrize("settings", [{"enabled": False}, {"enabled": True, "paused": True}])
async def test_the_timer_does_nothing_where_it_is_off_or_paused(setting: Setting, settings: dict[str, bool]) -> None:
    await setting.keep("a")
    await setting.tick(setting.with_settings(**settings))
    assert setting.asked() == []


async def test_before_the_first_event_the_event_clock_cleans_nothing(setting: Setting) -> None:
    await setting.keep("a")
    setting.clock = EventClock()
    await setting.tick(setting.with_settings(enabled=True, after_days=0))
    assert setting.asked() == []


@pytest.mark.slow
async def test_what_is_accessed_meanwhile_is_spared(setting: Setting) -> None:
    about = await setting.keep("a")
    await setting.tick()
    touched = Touch(event_id=some_id(), user_id="u", timestamp=DUE, memory_ids=[about["memory_id"]])
    assert await setting.apply(touched, *setting.asked()) == {"touched": 1, "spared": 1}
    assert await setting.counts() == (1, 0)


@pytest.mark.slow
async def test_what_was_spared_for_a_pin_that_is_gone_is_asked_for_again(setting: Setting) -> None:
    """A day later, under another event id."""
    about = await setting.keep("a")
    await setting.tick()
    assert await setting.apply(of_now(Pin, about), *setting.asked()) == {"spared": 1}
    await setting.apply(of_now(Unpin, about))
    setting.clock.observe(DUE + DAY_MS)
    await setting.tick()
    assert await setting.apply(*setting.asked()) == {"archived": 1}


@pytest.mark.slow
async def test_what_was_archived_for_long_enough_is_removed(setting: Setting) -> None:
    await setting.apply(of_now(Archive, await setting.keep("a")))
    setting.clock.observe(DUE + 90 * DAY_MS)
    await setting.tick()
    assert setting.asked() == []
    setting.clock.observe(DUE + 90 * DAY_MS + 1)
    await setting.tick()
    (event,) = setting.asked()
    assert isinstance(event, Remove)
    assert (event.reason, await setting.apply(event)) == ("retention", {"removed": 1})
    assert await setting.counts() == (0, 0)
    assert labelled(setting.metrics.cleanup) == {("removed",): 1}


@pytest.mark.slow
async def test_what_was_restored_meanwhile_is_not_removed(setting: Setting) -> None:
    """Though it is archived again when the event comes: a shard that is behind its log decides on the past."""
    about = await setting.keep("a")
    await setting.apply(of_now(Archive, about))
    setting.clock.observe(DUE + 91 * DAY_MS)
    await setting.tick()
    await setting.apply(of_now(Restore, about, DUE + 1), of_now(Archive, about, DUE + 90 * DAY_MS))
    assert await setting.apply(*setting.asked()) == {"spared": 1}
    assert await setting.counts() == (0, 1)


@pytest.mark.slow
async def test_each_access_is_decided_on_anew(setting: Setting) -> None:
    """Also on the same day."""
    about = await setting.keep("a", importance=20)
    agent = setting.with_settings(enabled=True, after_days=0, recent_access_days=0)
    await setting.tick(agent)
    touched = Touch(event_id=some_id(), user_id="u", timestamp=DUE, memory_ids=[about["memory_id"]])
    assert await setting.apply(touched, *setting.asked()) == {"touched": 1, "spared": 1}
    setting.clock.observe(DUE + 1)
    await setting.tick(agent)
    assert await setting.apply(*setting.asked()) == {"archived": 1}


async def test_one_users_cleanup_leaves_the_others_alone(setting: Setting) -> None:
    """Also a user of the same shard."""
    for user in ("u", "v", "w"):
        await setting.keep(f"of {user}", user)
    cleaned = await setting.agent.clean(DUE, "v")
    assert [event.user_id for event in setting.asked()] == ["v"]
    assert [candidate.user_id for candidate in cleaned.going] == ["v"]
    assert len((await setting.agent.verdicts(DUE, None, 10)).going) == 3


@pytest.mark.slow
async def test_a_great_many_go_little_by_little(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that wait are counted; nothing more is asked for before the first have come back."""
    monkeypatch.setattr(cleanup, "EVENTS_A_SHARD", 2)
    for number in range(5):
        await setting.keep(f"text {number}")
    first = await setting.agent.clean(DUE)
    await setting.agent.clean(DUE)
    asked = setting.asked()
    assert (len(asked), first.going_by_cause, len(first.going)) == (2, {"deprecated": 5}, 2)
    await setting.apply(*asked)
    await setting.agent.clean(DUE)
    assert len(setting.asked()) == 2


async def test_a_shard_that_moves_away_is_cleaned_by_its_new_owner(setting: Setting) -> None:
    """It stops nothing; who asks for a user of that shard is told."""
    users = {partition_of(user, 2): user for user in "abcdefgh"}
    for user in users.values():
        await setting.keep(user, user)
    partitions = setting.shards.partitions
    setting.shards.own(frozenset({1}))
    await until(lambda: partitions() == [1])
    setting.shards.partitions = lambda: [0, 1]  # type: ignore[method-assign]
    await setting.tick()
    assert [event.user_id for event in setting.asked()] == [users[1]]
    with pytest.raises(ShardNotHere):
        await setting.agent.clean(DUE, users[0])
    setting.shards.partitions = partitions  # type: ignore[method-assign]


@pytest.mark.slow
async def test_the_log_counts_and_tells_no_text(setting: Setting, caplog: pytest.LogCaptureFixture) -> None:
    """Nothing where there is nothing to be done."""
    caplog.set_level(logging.INFO, "streams.memory.cleanup")
    await setting.keep("a secret")
    kept = await setting.keep("another")
    agent = setting.with_settings(enabled=True, whitelist={"ids": [kept["memory_id"]]})
    await setting.tick(agent)
    await setting.tick(agent)
    partition = partition_of("u", 2)
    assert caplog.messages == [f"shard {partition}: cleanup archives 1 memories and removes 0; exempt: 1 whitelist"]


async def test_a_broker_that_does_not_take_it_gets_it_later(setting: Setting) -> None:
    await setting.keep("a")
    setting.broker.refusing = {TOPICS.long_term}
    await setting.tick()
    assert (setting.asked(), await setting.outbox.flush()) == ([], False)
    setting.broker.refusing = set()
    assert await setting.outbox.flush() or await setting.outbox.flush()
    assert len(setting.asked()) == 1
