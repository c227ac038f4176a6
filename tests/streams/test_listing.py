"""Pages are cut where the shard lives: what comes to the event loop is what is shown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from schemas.events import Archive, Pin
from schemas.memories import State
from schemas.settings import LifecycleSettings, LongTermSettings
from streams.rules.filtering import Filter
from streams.web.listing import PageQuery, page_of_archive, page_of_memories
from tables.analysts.statistics import DAY_MS
from tables.shard.shard import Shard
from tests.support.making import START, axis, promotion
from tests.tables.commands import event

SAID = [promotion(f"text {n}", f"{n}", at=START + n, importance=70 + n) for n in range(6)]
IDS = [one.memory_id for one in SAID]


@pytest.fixture
def shard(tmp_path: Path) -> Iterator[Shard]:
    """Memory 1 is pinned."""
    shard = Shard(0, tmp_path, "toy", 8, LongTermSettings(), LifecycleSettings())
    shard.apply(SAID, {one.event_id: axis(n) for n, one in enumerate(SAID)}, START)
    shard.apply([event(Pin, memory_id=IDS[1])], {}, START)
    yield shard
    shard.close()


def test_pages_follow_each_other_and_say_how_many_there_are(shard: Shard) -> None:
    wanted = PageQuery("u", (), 4, None, now=START)
    first = page_of_memories(shard, wanted, LifecycleSettings())
    assert ([one.id for one in first.memories], first.total, first.next_after) == (IDS[:4], 6, IDS[3])
    rest = page_of_memories(shard, PageQuery("u", (), 4, first.next_after, now=START), LifecycleSettings())
    assert ([one.id for one in rest.memories], rest.total, rest.next_after) == (IDS[4:], 6, None)


def test_state_and_filters_are_applied_before_the_page_is_cut(shard: Shard) -> None:
    later = START + 30 * DAY_MS
    active = page_of_memories(shard, PageQuery("u", (), 1, None, State.ACTIVE, later), LifecycleSettings())
    assert ([one.id for one in active.memories], active.total, active.next_after) == ([IDS[1]], 1, None)
    high = Filter.all_of(["importance:gte:73"])
    found = page_of_memories(shard, PageQuery("u", high, 2, None, State.COLD, later), LifecycleSettings())
    assert ([one.id for one in found.memories], found.total, found.next_after) == (IDS[3:5], 3, IDS[4])


def test_the_archive_has_pages_too(shard: Shard) -> None:
    shard.apply([event(Archive, memory_id=one) for one in IDS[2:]], {}, START)
    page = page_of_archive(shard, PageQuery("u", Filter.all_of(["importance:lte:74"]), 2, None))
    assert ([one.memory.id for one in page.memories], page.total, page.next_after) == (IDS[2:4], 3, IDS[3])
