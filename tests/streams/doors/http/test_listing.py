"""Pages are cut where the shard lives: what comes to the event loop is what is shown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from schemas.events import Archive, Pin, Supersede
from schemas.lifecycle import wanted_states
from schemas.memories import State
from schemas.settings import LifecycleSettings, LongTermSettings, Settings
from streams.doors.http.listing import PageQuery, page_of_archive, page_of_memories
from streams.doors.http.memories import memory_routes
from streams.recall.filtering import Filter
from streams.service import MemoryService
from tables.analysts.statistics import DAY_MS
from tables.memories.shard import Shard
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


class OneShard:
    """What the routes ask a service."""

    def __init__(self, shard: Shard, now: int) -> None:
        self._shard, self.settings, self.clock = shard, Settings.load(), FixedClock(now)
        self.users = self.writes = self

    async def ask(self, user_id: str, method: Any, *args: Any) -> Any:
        return method(self._shard, *args)

    async def ask_partly(self, partial: bool, user_id: str, method: Any, *args: Any) -> Any:
        return await self.ask(user_id, method, *args), ()

    async def has_reached(self, *_: object) -> None:
        """Nothing is waited for."""


class FixedClock:
    def __init__(self, now: int) -> None:
        self.now = lambda: now


def test_pages_follow_each_other_and_say_how_many_there_are(shard: Shard) -> None:
    wanted = PageQuery("u", (), 4, None, now=START)
    first = page_of_memories(shard, wanted, LifecycleSettings())
    assert ([one.id for one in first.memories], first.total, first.next_after) == (IDS[:4], 6, IDS[3])
    rest = page_of_memories(shard, PageQuery("u", (), 4, first.next_after, now=START), LifecycleSettings())
    assert ([one.id for one in rest.memories], rest.total, rest.next_after) == (IDS[4:], 6, None)


def test_state_and_filters_are_applied_before_the_page_is_cut(shard: Shard) -> None:
    later = START + 30 * DAY_MS
    active = page_of_memories(shard, PageQuery("u", (), 1, None, wanted_states(), later), LifecycleSettings())
    assert ([one.id for one in active.memories], active.total, active.next_after) == ([IDS[1]], 1, None)
    high = Filter.all_of(["importance:gte:73"])
    found = page_of_memories(
        shard, PageQuery("u", high, 2, None, wanted_states(state=State.COLD), later), LifecycleSettings()
    )
    assert ([one.id for one in found.memories], found.total, found.next_after) == (IDS[3:5], 3, IDS[4])


@pytest.mark.parametrize(
    ("asked", "listed"),
    [
        ({}, [1]),
        ({"include_cold": "true"}, [0, 1, 2, 3, 4, 5]),
        ({"includeCold": "true"}, [0, 1, 2, 3, 4, 5]),
        ({"state": "cold"}, [0, 2, 3, 4, 5]),
        ({"include_all": "true"}, [0, 1, 2, 3, 4, 5]),
        ({"includeAll": "true", "state": "deprecated"}, []),
    ],
)
def test_a_list_takes_the_state_filters_of_a_search(shard: Shard, asked: dict[str, str], listed: list[int]) -> None:
    """Active by default; over HTTP, with a service that has this shard alone."""
    api = FastAPI()
    api.include_router(memory_routes(cast(MemoryService, OneShard(shard, START + 30 * DAY_MS))))
    answer = TestClient(api).get("/v1/memories", params={"user_id": "u", **asked}).json()
    assert ([one["id"] for one in answer["memories"]], answer["total"]) == (
        [str(IDS[n]) for n in listed],
        len(listed),
    )


def test_what_a_newer_memory_replaces_is_listed_only_if_it_is_asked_for(shard: Shard) -> None:
    """As in a search."""
    shard.apply([event(Supersede, memory_id=IDS[0], by=IDS[5])], {}, START)
    api = FastAPI()
    api.include_router(memory_routes(cast(MemoryService, OneShard(shard, START))))
    for asked, total in (({}, 5), ({"include_cold": "true"}, 5), ({"state": "active"}, 5), ({"include_all": "1"}, 6)):
        answer = TestClient(api).get("/v1/memories", params={"user_id": "u", **asked}).json()
        assert (answer["total"], str(IDS[0]) in str(answer)) == (total, total == 6)


def test_the_archive_has_pages_too(shard: Shard) -> None:
    shard.apply([event(Archive, memory_id=one) for one in IDS[2:]], {}, START)
    page = page_of_archive(shard, PageQuery("u", Filter.all_of(["importance:lte:74"]), 2, None))
    assert ([one.memory.id for one in page.memories], page.total, page.next_after) == (IDS[2:4], 3, IDS[3])
