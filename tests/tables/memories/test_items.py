"""Items: values under keys, which the order of the log alone decides."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from schemas.events import Archive, Expire, Forget, ForgetUser, LongTermEvent, Promotion, Remember, Touch, Unpin
from schemas.lifecycle import DAY_MS
from schemas.memories import Memory, State
from schemas.settings import LifecycleSettings, LongTermSettings
from schemas.times import iso
from tables.memories.catalog.changes import ExpiredItem
from tables.memories.items import is_expired
from tables.memories.shard import Shard
from tests.support.making import START, axis, promotion
from tests.tables.commands import event

KEY = uuid.UUID(int=7)


@pytest.fixture
def shard(tmp_path: Path) -> Iterator[Shard]:
    made = Shard(0, tmp_path / "0", "toy", 8, LongTermSettings(max_memories_per_user=2), LifecycleSettings())
    yield made
    made.close()


def put(value: int, at: int = START, key: uuid.UUID = KEY, **fields: Any) -> Remember:
    return event(Remember, at=at, kind="item", memory_id=key, text="a", metadata={"value": {"n": value}}, **fields)


def apply(shard: Shard, *events: LongTermEvent) -> dict[str, int]:
    texts = [one for one in events if isinstance(one, Promotion | Remember)]
    return shard.apply(events, {one.event_id: axis(0) for one in texts}, START).effects()


def held(shard: Shard, key: uuid.UUID = KEY) -> Memory | None:
    return shard.memory_of("u", key)


def value(shard: Shard) -> Any:
    memory = held(shard)
    return None if memory is None else memory.meta["value"]["n"]


@pytest.mark.parametrize("together", [True, False])
def test_what_is_written_last_is_there_whatever_its_time(shard: Shard, together: bool) -> None:
    events = [put(1, START + 5), put(2, START), put(3, START - 5)]
    for group in [events] if together else [[one] for one in events]:
        apply(shard, *group)
    assert value(shard) == 3
    assert shard.count() == 1
    assert shard.in_step()


@pytest.mark.parametrize("together", [True, False])
def test_a_key_that_was_forgotten_is_free_whatever_the_time(shard: Shard, together: bool) -> None:
    events: list[LongTermEvent] = [put(1), event(Forget, at=START + 9, memory_id=KEY), put(2)]
    for group in [events] if together else [[one] for one in events]:
        apply(shard, *group)
    assert value(shard) == 2
    apply(shard, event(Forget, memory_id=KEY))
    assert held(shard) is None


def test_a_key_that_was_never_written_may_be_forgotten_before(shard: Shard) -> None:
    assert apply(shard, event(Forget, memory_id=KEY), put(1)) == {"unknown": 1, "new": 1}
    assert value(shard) == 1


def test_forgetting_the_user_forgets_items_and_holds_when_the_log_is_read_again(shard: Shard) -> None:
    apply(shard, put(1), event(ForgetUser, at=START + 5))
    assert apply(shard, put(1)) == {"forgotten": 1}
    assert apply(shard, put(2, START + 6)) == {"new": 1}


def test_an_event_that_comes_again_changes_nothing(shard: Shard) -> None:
    first = put(1)
    apply(shard, first, put(2))
    assert apply(shard, first) == {"repeated": 1}
    assert value(shard) == 2


def test_nothing_is_merged_with_an_item(shard: Shard) -> None:
    other = uuid.UUID(int=8)
    apply(shard, put(1), put(2, key=other), event(Remember, text="b"), put(3, key=uuid.UUID(int=9)))
    assert shard.count() == 4


def test_items_give_way_to_nothing_and_take_nobodys_place(shard: Shard) -> None:
    for number in range(4):
        apply(shard, put(number, key=uuid.UUID(int=number)))
    apply(shard, promotion("a", "a"))
    assert shard.count() == 5


def test_an_item_does_not_decay_unpinned_or_not(shard: Shard) -> None:
    apply(shard, put(1), event(Unpin, memory_id=KEY))
    shard.recompute(START + 5_000 * DAY_MS, LifecycleSettings())
    found = held(shard)
    assert found is not None
    assert (found.state, found.pinned) == (State.ACTIVE, True)


def test_an_archived_item_is_replaced_as_well(shard: Shard) -> None:
    apply(shard, put(1))
    apply(shard, event(Archive, memory_id=KEY))
    assert held(shard) is None
    apply(shard, put(2))
    assert value(shard) == 2
    assert shard.archive.listed("u") == []


def test_a_memory_of_another_kind_is_not_replaced(shard: Shard) -> None:
    apply(shard, event(Remember, text="b", memory_id=KEY))
    assert apply(shard, put(1)) == {"repeated": 1}


def test_what_expires_is_named_and_removed(shard: Shard) -> None:
    apply(shard, put(1, ttl_seconds=60), put(2, key=uuid.UUID(int=8)))
    ends = START + 60_000
    assert shard.cleanup.expired_items(ends - 1, 10) == []
    assert shard.cleanup.expired_items(ends, 10) == [ExpiredItem("u", KEY, ends)]
    assert apply(shard, event(Expire, memory_id=KEY, expired_at=ends)) == {"expired": 1}
    assert held(shard) is None
    assert shard.in_step()


def test_what_was_read_or_written_meanwhile_is_spared(shard: Shard) -> None:
    apply(shard, put(1, ttl_seconds=60))
    apply(shard, event(Touch, at=START + 30_000, memory_ids=[KEY]))
    expiry = event(Expire, memory_id=KEY, expired_at=START + 60_000)
    assert apply(shard, expiry) == {"spared": 1}
    found = held(shard)
    assert found is not None
    assert found.meta["stored"] == {"ttl_seconds": 60, "expires_at": iso(START + 90_000)}
    assert (is_expired(found, START + 89_999), is_expired(found, START + 90_000)) == (False, True)
    apply(shard, put(2))
    assert apply(shard, event(Expire, memory_id=KEY, expired_at=START + 90_000)) == {"spared": 1}


@pytest.mark.parametrize("wrong", [{"memory_id": None}, {"supersedes": [uuid.UUID(int=1)]}, {"ttl_seconds": 0}])
def test_an_item_that_is_none_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        event(Remember, **{"kind": "item", "text": "a", "memory_id": KEY, **wrong})
