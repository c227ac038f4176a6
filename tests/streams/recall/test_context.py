"""What `GET /v1/context` answers: dates, and as much as fits."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from schemas.events import Pin
from tests.support.making import START, line, promotion
from tests.support.talk import Talk, talk

DAY = 86_400_000


@pytest.fixture
async def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Talk]:
    async with talk(tmp_path, monkeypatch) as made:
        yield made


async def answer(http: httpx.AsyncClient, path: str = "/v1/context", **asked: Any) -> dict[str, Any]:
    response = await http.get(path, params={"user_id": "u", "session_id": "u-s", **asked})
    assert response.status_code == 200, response.text
    found: dict[str, Any] = response.json()
    return found


async def test_a_prompt_begins_with_the_day_and_dates_each_memory(here: Talk) -> None:
    """By the event clock, which stands at the newest message; or as of the day that is asked for."""
    await here.applied(promotion("the key lies in Oslo", "0"), promotion("钥匙 Oslo 在青岛这里呢", "1"))
    await here.say(line(1, "u", "user", 10 * 86_400, content="where is the key?"))
    async with here.http() as http:
        found = await answer(http, q="Oslo key 钥匙")
        assert found["prompt"].startswith("Today is Sunday, 2026-01-11.\n")
        assert "- [2026-01-01, 10 days ago] the key lies in Oslo" in found["prompt"]
        assert "- [2026-01-01，10 天前] 钥匙 Oslo 在青岛这里呢" in found["prompt"]
        assert "[2026-01-11 00:00]\nuser: where is the key?" in found["prompt"]
        assert found["reference_date"] == "2026-01-11"
        assert {hit["when"] for hit in found["memories"]} == {"2026-01-01, 10 days ago", "2026-01-01，10 天前"}

        west = await answer(http, q="Oslo key", reference_date="2026-01-03", timezone="America/New_York")
        assert west["prompt"].startswith("Today is Saturday, 2026-01-03.\n")
        assert "- [2025-12-31, 3 days ago] the key lies in Oslo" in west["prompt"], "it was said at midnight in UTC"
        assert "[2026-01-10 19:00]" in west["prompt"]
        moment = await answer(http, q="Oslo key", reference_date=START + DAY)
        assert moment["reference_date"] == "2026-01-02"

        body = {"user_id": "u", "query": "Oslo key", "reference_date": "2026-01-01", "state": "active"}
        search = (await http.post("/v1/search", json=body)).raise_for_status().json()
        assert search["reference_date"] == "2026-01-01"
        assert search["results"][0]["when"] == "2026-01-01, today"


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("reference_date", "yesterday", "must be a day such as 2026-03-14"),
        ("reference_date", "2026-02-30", "must be a day such as 2026-03-14"),
        ("reference_date", "1764", "between the years 1990 and 2100"),
        ("reference_date", "9" * 5_000, "must be a day such as 2026-03-14"),
        ("reference_date", "²", "must be a day such as 2026-03-14"),
        ("timezone", "Oslo", "needs an IANA name"),
        ("max_tokens", 199, "greater than or equal to 200"),
        ("memories", -1, "greater than or equal to 0"),
    ],
)
async def test_what_is_no_day_no_zone_and_no_length_is_refused(
    here: Talk, name: str, value: object, why: str
) -> None:
    async with here.http() as http:
        asked: dict[str, Any] = {"user_id": "u", "session_id": "u-s", name: value}
        response = await http.get("/v1/context", params=asked)
        assert (response.status_code, name in response.text, why in response.text) == (422, True, True), response.text


async def test_a_moment_that_is_outside_of_all_years_in_that_zone_is_refused(here: Talk) -> None:
    async with here.http() as http:
        asked = {"reference_date": "1990-01-01T00:30", "timezone": "Asia/Shanghai"}
        response = await http.get("/v1/context", params={"user_id": "u", "session_id": "u-s", **asked})
        assert (response.status_code, "between the years 1990 and 2100" in response.text) == (422, True)


async def test_what_is_cut_out_of_the_conversation_is_found(here: Talk) -> None:
    """The answer lies in an exchange of the same session for which there is no room."""
    long = "we talked about the weather and the garden " * 12
    await here.say(line(0, "u", "user", 0, content="the spare key lies under the blue stone"))
    for turn in range(1, 6):
        await here.say(line(turn, "u", "user", 300 * turn, content=f"{long} {turn}"))
    await here.say(line(9, "u", "user", 3_000, content="where is the spare key?"))
    async with here.http() as http:
        found = await answer(http, max_tokens=400)
    assert found["left_out"]["exchanges"] > 0
    assert "] the spare key lies under the blue stone\n" in found["prompt"]
    assert found["prompt"].count("where is the spare key?") == 1


async def test_a_budget_is_filled_by_relevance_and_pinned_ones_come_first(here: Talk) -> None:
    rooms = [promotion(f"the key of room {n} hangs in Oslo, behind door number {n}", str(n)) for n in range(30)]
    await here.applied(*rooms, promotion("key of the garage: Oslo", "g"), promotion("I like tea", "t"))
    garage = rooms[7].memory_id
    pin = Pin(event_id=rooms[0].event_id, user_id="u", timestamp=START, memory_id=garage)
    await here.applied(pin.model_copy(update={"event_id": garage}))
    async with here.http() as http:
        usual = await answer(http, q="Where is the key of a room in Oslo?")
        assert (len(usual["memories"]), usual["left_out"]) == (3, {"memories": 0, "notes": 0, "exchanges": 0})
        five = await answer(http, q="Where is the key of a room in Oslo?", memories=5)
        assert len(five["memories"]) == 5
        assert (await answer(http, q="Where is the key of a room in Oslo?", memories=0))["memories"] == []

        small = await answer(http, q="Where is the key of a room in Oslo?", max_tokens=400)
        large = await answer(http, q="Where is the key of a room in Oslo?", max_tokens=4_000)
        assert 0 < small["prompt_tokens"] <= 400 < large["prompt_tokens"] <= 4_000
        assert large["left_out"]["memories"] == 0
        assert len(small["memories"]) + small["left_out"]["memories"] == len(large["memories"]) == 31
        assert f"({small['left_out']['memories']} more match, but there is no room for them.)" in small["prompt"]
        for found in (small, large):
            assert found["memories"][0]["id"] == str(garage)
            assert [hit["pinned"] for hit in found["memories"]].count(True) == 1
            others = [hit["relevance"] for hit in found["memories"][1:]]
            assert others == sorted(others, reverse=True)
            assert all(f"] {hit['memory']}\n" in found["prompt"] for hit in found["memories"])
        assert "I like tea" not in large["prompt"], "it does not match"


async def test_only_memories_that_are_shown_count_as_accessed(here: Talk) -> None:
    events = [promotion(f"the key of room {n} hangs in Oslo, behind door number {n}", str(n)) for n in range(30)]
    await here.applied(*events)
    async with here.http() as http:
        found = await answer(http, q="Where is the key of a room in Oslo?", max_tokens=400)
    assert 0 < len(found["memories"]) < 30
    (touch,) = here.worker.recall._accesses.take()
    assert {str(one) for one in touch.memory_ids} == {hit["id"] for hit in found["memories"]}


async def test_without_dates_nothing_is_dated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with talk(tmp_path, monkeypatch, recall={"dates": False}) as here:
        await here.applied(promotion("the key lies in Oslo", "0"))
        await here.say(line(1, "u", "user", 10 * 86_400, content="where is the key?"))
        async with here.http() as http:
            found = await answer(http)
    assert "- the key lies in Oslo\n" in found["prompt"]
    assert found["prompt"].endswith("The conversation so far:\nuser: where is the key?")
    assert "2026" not in found["prompt"]
    assert (found["reference_date"], found["memories"][0]["when"]) == (None, None)
