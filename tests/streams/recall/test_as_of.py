"""`as_of` asks what held then: in searches, lists and contexts."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from schemas.events import Supersede
from schemas.times import iso
from tests.support.making import START, line, promotion
from tests.support.talk import Talk, talk

DAY = 86_400_000
#: What is stated on the first, fifth and ninth of January 2026; the second supersedes nothing.
BERGEN = promotion("my home: I live in Bergen", "0")
OSLO = promotion("my home: I just moved to Oslo", "1", at=START + 4 * DAY)
PARIS = promotion("my home: I moved to Paris", "2", at=START + 8 * DAY)
ROWING = promotion("at home I like to row", "3", at=START + 2 * DAY)


@pytest.fixture
async def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Talk]:
    async with talk(tmp_path, monkeypatch) as made:
        await made.applied(BERGEN, OSLO, PARIS, ROWING)
        yield made


async def superseded(here: Talk) -> None:
    fields: dict[str, Any] = {"event_id": uuid.uuid4(), "user_id": "u", "timestamp": START + 9 * DAY}
    assert BERGEN.memory_id is not None
    await here.applied(Supersede(**fields, memory_id=BERGEN.memory_id, by=OSLO.memory_id))


async def search(http: httpx.AsyncClient, **fields: Any) -> list[dict[str, Any]]:
    body = {"user_id": "u", "query": "Where is my home?", "include_short_term": False, **fields}
    answer = await http.post("/v1/search", json=body)
    return list(answer.raise_for_status().json()["results"])


@pytest.mark.parametrize(
    ("as_of", "found"),
    [
        ("2025-12-31", []),
        ("2026-01-01", [BERGEN]),
        ("2026-01-04", [BERGEN, ROWING]),
        ("2026-01-05", [OSLO, ROWING]),
        (START + 4 * DAY - 1, [BERGEN, ROWING]),
        (iso(START + 4 * DAY), [OSLO, ROWING]),
        ("2026-02-01", [PARIS, OSLO, ROWING]),
    ],
)
async def test_a_search_finds_what_held_then(here: Talk, as_of: Any, found: list[Any]) -> None:
    """A superseded memory until its end; what a statement updated later is not outdated yet."""
    await superseded(here)
    async with here.http() as http:
        hits = await search(http, as_of=as_of)
        assert [hit["memory"] for hit in hits] == [one.text for one in found]
        assert [hit["updated_by"] for hit in hits if hit["memory"] == OSLO.text] == [
            str(PARIS.memory_id) if PARIS in found else None for one in found if one is OSLO
        ]
        listed = await http.get("/v1/memories", params={"user_id": "u", "as_of": as_of})
        names = [one["memory"] for one in listed.raise_for_status().json()["memories"]]
        assert sorted(names) == sorted(one.text for one in found)


async def test_a_hit_says_from_when_to_when_it_holds(here: Talk) -> None:
    await superseded(here)
    async with here.http() as http:
        (hit, _) = await search(http, as_of="2026-01-04", reference_date="2026-01-11")
        assert (hit["valid_from"], hit["valid_to"]) == (None, iso(START + 4 * DAY))
        assert hit["when"] == "2026-01-01, 10 days ago, until 2026-01-05"
        body = {"user_id": "u", "text": "my home is a boat", "valid_from": "2027-01-01", "valid_to": "2027-06-01"}
        (await http.post("/v1/memories", json=body)).raise_for_status()
        await here.applied()
        (boat, *_) = await search(http, as_of="2027-03-01", query="home boat", reference_date="2026-01-11")
        assert boat["memory"] == "my home is a boat"
        assert boat["when"].endswith(", from 2027-01-01, until 2027-06-01")
        assert (boat["valid_from"], boat["valid_to"]) == ("2027-01-01T00:00:00.000Z", "2027-06-01T00:00:00.000Z")


async def test_what_had_faded_and_what_was_superseded_held_all_the_same(here: Talk) -> None:
    """The event clock is years later: all are deprecated, and found. `state` limits them."""
    await superseded(here)
    await here.applied(promotion("years later", "9", at=START + 2_000 * DAY))
    async with here.http() as http:
        assert [hit["state"] for hit in await search(http, as_of="2026-01-04")] == ["deprecated"] * 2
        assert await search(http, as_of="2026-01-04", state="active") == []


async def test_a_context_says_as_of_when_its_memories_are(here: Talk) -> None:
    await superseded(here)
    async with here.http() as http:
        asked = {"user_id": "u", "session_id": "s", "q": "my home", "as_of": "2026-01-04"}
        prompt = (await http.get("/v1/context", params=asked)).raise_for_status().json()["prompt"]
    assert "What is known of the user, as of 2026-01-04:\n" in prompt
    assert "Bergen" in prompt
    assert "Oslo" not in prompt


async def test_the_day_ends_in_the_users_zone(here: Talk) -> None:
    """At START it is five in the afternoon of the day before in Los Angeles."""
    async with here.http() as http:
        west = {"as_of": "2025-12-31", "timezone": "America/Los_Angeles"}
        assert [hit["memory"] for hit in await search(http, **west)] == [BERGEN.text]
        assert await search(http, as_of="2025-12-31", timezone="Asia/Shanghai") == []
        listed = await http.get("/v1/memories", params={"user_id": "u", **west})
        assert listed.json()["total"] == 1


async def test_an_exchange_of_a_window_holds_from_its_beginning(here: Talk) -> None:
    await here.say(line(1, "u", "user", 20 * 86_400, content="my home is a tent now"))
    async with here.http() as http:
        for day, count in (("2026-01-20", 0), ("2026-01-22", 1)):
            hits = await search(http, as_of=day, include_short_term=True)
            assert sum(hit["state"] == "short_term" for hit in hits) == count


@pytest.mark.parametrize("wrong", ["then", "2026-02-30", "1764", "²"])
async def test_what_is_no_time_is_refused(here: Talk, wrong: str) -> None:
    async with here.http() as http:
        asked = {"user_id": "u", "session_id": "s", "as_of": wrong}
        answers = [
            await http.post("/v1/search", json={"user_id": "u", "query": "home", "as_of": wrong}),
            await http.get("/v1/context", params=asked),
            await http.get("/v1/memories", params={"user_id": "u", "as_of": wrong}),
        ]
        for answer in answers:
            assert answer.status_code == 422
            assert "as_of" in answer.json()["detail"]


async def test_a_patch_sets_the_time_in_which_a_memory_holds(here: Talk) -> None:
    async with here.http() as http:
        path, user = f"/v1/memories/{BERGEN.memory_id}", {"user_id": "u"}
        done = await http.patch(path, json={**user, "valid_from": "2019-05-01", "valid_to": "2026-01-03"})
        assert done.status_code == 202
        await here.applied()
        memory = (await http.get(path, params=user)).json()
        assert (memory["valid_from"], memory["valid_to"]) == ("2019-05-01T00:00:00.000Z", "2026-01-03T00:00:00.000Z")
        assert [hit["memory"] for hit in await search(http, as_of="2020-01-01")] == [BERGEN.text]
        early = await http.patch(path, json={**user, "valid_to": "2019-04-01"})
        assert (early.status_code, early.json()["detail"].partition(":")[0]) == (422, "valid_to")
        both = await http.patch(path, json={**user, "valid_from": "2020-01-02", "valid_to": "2020-01-01"})
        assert both.status_code == 422
