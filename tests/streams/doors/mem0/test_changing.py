"""The client's options, which it writes into the address as Python writes them."""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx
import pytest

from schemas.settings import Settings
from tests.support.late_api import http_of


@pytest.fixture
async def asked(settings: Settings) -> AsyncIterator[httpx.AsyncClient]:
    async with http_of(settings) as client:
        yield client


@pytest.mark.parametrize(
    "filters",
    ["{1: 2}", "{'run_id': {1: 2}}", "{'OR': [{(): 1}]}", "{'run_id': b'a'}", "{'run_id': {1}}", "{'run_id': 1j}",
     "[]", "x", "(" * 3000, "{" * 200, "{'AND': " * 100, "", "None", "9" * 4000, "{'n': " + "9" * 400 + "}"],
    ids=range(15),
)  # fmt: skip
async def test_filters_that_no_client_writes_are_refused_in_one_line(asked: httpx.AsyncClient, filters: str) -> None:
    answer = await asked.delete("/v1/memories/", params={"filters": filters, "user_id": "ann"})
    assert answer.status_code == 400, answer.text
    assert "\n" not in answer.json()["detail"]
