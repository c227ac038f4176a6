"""The in-memory Siltstone answers as a worker does."""

from __future__ import annotations

import doctest
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta

import pytest

from schemas.ids import memory_id
from siltstone_client import Memory, NotFound, testing
from siltstone_client.said import injected
from siltstone_client.testing import InMemorySiltstone
from tests.client.story import every_method

START = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.fixture
def siltstone() -> InMemorySiltstone:
    return InMemorySiltstone()


@pytest.fixture
def memory(siltstone: InMemorySiltstone) -> Iterator[Memory]:
    with siltstone.memory() as memory:
        yield memory


async def test_every_method_in_memory(siltstone: InMemorySiltstone) -> None:
    """The story that a worker is told, too."""
    async with siltstone.async_memory() as memory:
        await every_method(memory)


def test_the_example_of_the_module_is_true() -> None:
    failed, attempted = doctest.testmod(testing)
    assert (failed, attempted > 0) == (0, True)


def test_what_was_said_becomes_a_memory_under_its_id_when_the_session_ends(memory: Memory) -> None:
    said = [
        {"role": "user", "content": "I live in Oslo", "message_id": "m/1"},
        {"role": "assistant", "content": "Ok"},
    ]
    added = memory.add([*said, {"role": "user", "content": "And I ski"}], user_id="ann", session_id="s 1")
    hits = memory.search("Who lives in Oslo?", user_id="ann").results
    assert (hits[0].memory, hits[0].state) == ("I live in Oslo\nOk", "short_term")
    memory.end_session(user_id="ann", session_id="s 1")
    kept = memory.list(user_id="ann").memories
    assert [one.memory for one in kept] == ["I live in Oslo\nOk", "And I ski"]
    ids = [one.event_id for one in added.accepted]
    assert kept[0].id == memory_id("ann", "s 1", ids[:2])
    assert {one.state for one in memory.search("Oslo", user_id="ann").results} == {"active"}


def test_users_know_nothing_of_each_other(memory: Memory) -> None:
    kept = memory.remember("The key lies under the stone", user_id="ann")
    assert memory.search("key", user_id="bob").results == []
    with pytest.raises(NotFound, match="user bob has no memory"):
        memory.get(kept.event_id, user_id="bob")


def test_what_is_related_is_similar_unless_everything_is_asked_for(memory: Memory) -> None:
    for text in ("green tea", "my green tea", "bees"):
        memory.remember(text, user_id="ann")
    tea = memory.list(user_id="ann").memories[0].id
    related = memory.related(tea, user_id="ann").related
    assert [one.memory for one in related] == ["my green tea"]
    assert len(memory.related(tea, user_id="ann", min_similarity=0).related) == 2


def test_what_is_forgotten_does_not_come_back(memory: Memory) -> None:
    said = {"role": "user", "content": "I live in Oslo", "message_id": "m1"}
    memory.add(said, user_id="ann", session_id="s")
    memory.end_session(user_id="ann", session_id="s")
    (kept,) = memory.list(user_id="ann").memories
    memory.forget(kept.id, user_id="ann")
    memory.add(said, user_id="ann", session_id="s")
    memory.end_session(user_id="ann", session_id="s")
    assert memory.list(user_id="ann").total == 0
    assert memory.search("Oslo", user_id="ann").results == []


def test_a_forgotten_user_does_not_come_back(memory: Memory) -> None:
    said = {"role": "user", "content": "I live in Oslo", "message_id": "m1"}
    memory.add(said, user_id="ann", session_id="s")
    memory.end_session(user_id="ann", session_id="s")
    memory.forget_user(user_id="ann")
    memory.add(said, user_id="ann", session_id="s")
    memory.end_session(user_id="ann", session_id="s")
    memory.add({"role": "user", "content": "I live in Rome"}, user_id="ann", session_id="another")
    memory.end_session(user_id="ann", session_id="another")
    assert [one.memory for one in memory.list(user_id="ann").memories] == ["I live in Rome"]


def test_whether_it_is_applied_is_only_told_to_who_waits(memory: Memory) -> None:
    said = {"role": "user", "content": "Hello"}
    assert memory.add(said, user_id="ann", session_id="s").applied is None
    assert memory.add([said, said], user_id="ann", session_id="s", wait=True).applied is True


def test_a_bad_message_does_not_take_the_others_along(memory: Memory) -> None:
    added = memory.add(
        [{"role": "user", "content": "Hello"}, {"role": "robot", "content": "Beep"}], user_id="ann", session_id="s"
    )
    assert ([one.index for one in added.not_taken], len(added.accepted)) == ([1], 1)


def test_its_clock_is_the_one_that_it_is_given() -> None:
    """A note expires, and what was said leaves its window after a day."""
    now = [START]
    with InMemorySiltstone(lambda: now[0]).memory() as memory:
        memory.add({"role": "user", "content": "Hello"}, user_id="ann", session_id="s")
        memory.remember("Buy milk", user_id="ann", kind="short_term", session_id="s", ttl_seconds=60)
        assert [one.memory for one in memory.notes(user_id="ann", session_id="s").memories] == ["Buy milk"]
        now[0] += timedelta(seconds=61)
        assert memory.notes(user_id="ann", session_id="s").memories == []
        now[0] += timedelta(days=1)
        assert memory.exchanges(user_id="ann", session_id="s").exchanges == []


def test_its_answers_are_dated_and_limited_like_a_workers() -> None:
    """And what adapters give to a model begins with the day."""
    now = datetime(2026, 1, 5, 12, tzinfo=UTC)
    memory = InMemorySiltstone(lambda: now).memory()
    for place in range(5):
        memory.remember(f"I keep bees in hive {place}", user_id="ann", timestamp=datetime(2026, 1, 2, tzinfo=UTC))
    found = memory.search("bees", user_id="ann")
    assert (found.reference_date, found.results[0].when) == (now.date(), "2026-01-02, 3 days ago")
    text = injected(found)
    assert text is not None
    assert "Today is Monday, 2026-01-05.\n- [2026-01-02, 3 days ago] I keep bees in hive" in text
    small = memory.context(user_id="ann", session_id="s", query="bees", max_tokens=30)
    assert (len(small.memories), small.left_out.memories) == (2, 3)
    assert small.prompt.startswith("Today is Monday, 2026-01-05.\n- [2026-01-02, 3 days ago] I keep bees")
    later = memory.context(user_id="ann", session_id="s", query="bees", reference_date=date(2026, 1, 4), memories=1)
    assert [one.when for one in later.memories] == ["2026-01-02, 2 days ago"]


def test_it_tells_what_held_then_like_a_worker() -> None:
    memory = InMemorySiltstone(lambda: datetime(2026, 2, 1, tzinfo=UTC)).memory()
    first, second = (datetime(2026, 1, day, 18, tzinfo=UTC) for day in (2, 9))
    old = memory.remember("I live in Bergen", user_id="ann", timestamp=first)
    new = memory.remember("I live in Oslo", user_id="ann", timestamp=second)
    memory.supersede(old.event_id, by=new.event_id, user_id="ann")
    for as_of, place in ((date(2026, 1, 2), "Bergen"), (second, "Oslo"), (None, "Oslo")):
        (hit,) = memory.search("Where do I live?", user_id="ann", as_of=as_of).results
        assert hit.memory == f"I live in {place}"
        assert [one.memory for one in memory.list(user_id="ann", as_of=as_of).memories] == [hit.memory]
    assert memory.get(old.event_id, user_id="ann").valid_to == second
    memory.update(old.event_id, user_id="ann", metadata={"still_holds": True})
    assert memory.list(user_id="ann").total == 2
    memory.update(old.event_id, user_id="ann", valid_from=datetime(2025, 1, 1, tzinfo=UTC))
    assert memory.list(user_id="ann", as_of=date(2025, 6, 1)).total == 1
