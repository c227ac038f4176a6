"""The time of a question, as mem0's client says it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from schemas.times import parse_timestamp
from tests.support.making import promotion
from tests.support.talk import Talk, talk

MARCH, APRIL = (parse_timestamp(f"2026-{month}-10T12:00:00Z") for month in ("03", "04"))


async def found(here: Talk, reference_date: object) -> Any:
    body = {
        "query": "hiking last month",
        "filters": {"user_id": "u"},
        "reference_date": reference_date,
        "threshold": 0,
    }
    async with here.http() as http:
        return await http.post("/v3/memories/search/", json=body)


@pytest.mark.parametrize(
    ("day", "first"),
    [
        ("2026-04-20", "hiking near Oslo"),
        ("2026-05-20", "hiking near Turin"),
        (MARCH // 1000 + 30 * 86_400, "hiking near Oslo"),
        (str(MARCH // 1000 + 60 * 86_400), "hiking near Turin"),
        ("2026-05-20T08:00:00+02:00", "hiking near Turin"),
    ],
)
async def test_times_are_those_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, day: object, first: str
) -> None:
    """A day, Unix time as a number or as text, or ISO 8601."""
    async with talk(tmp_path, monkeypatch) as here:
        await here.applied(
            promotion("hiking near Oslo", "0", at=MARCH), promotion("hiking near Turin", "1", at=APRIL)
        )
        answer = await found(here, day)
        results = answer.json()["results"]
        assert (results[0]["memory"], len(results)) == (first, 2)


@pytest.mark.parametrize("day", ["soon", -1, 1e300, "9" * 40, "2026-13-01"])
async def test_what_is_no_time_is_refused_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, day: object
) -> None:
    async with talk(tmp_path, monkeypatch) as here:
        answer = await found(here, day)
    assert (answer.status_code, answer.json()["detail"].partition(":")[0]) == (400, "reference_date"), answer.text
    assert "\n" not in answer.json()["detail"]
