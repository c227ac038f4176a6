"""What stands before all routes where tokens are asked for."""

from __future__ import annotations

from collections.abc import Collection

import fastapi
import httpx
import pytest

from schemas.tokens import Scope
from streams.access.admission import Admission
from streams.access.authorize import Principal
from streams.doors.http.guard import Guard
from streams.memory.read_your_writes import asked_by


class Everybody(Admission):
    """Each request is by a principal with these scopes."""

    def __init__(self, scopes: Collection[Scope]) -> None:
        self._scopes = scopes

    async def asking(self, headers: object) -> Principal:
        return Principal.of("ann's", ["ann"], self._scopes)


async def ask(scopes: Collection[Scope], path: str) -> httpx.Response:
    api = fastapi.FastAPI()

    @api.get("/v1/applied")
    @api.get("/mcp")
    async def asked() -> str | None:
        return asked_by.get()

    guarded = Guard(api, Everybody(scopes), open_probes=True)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(guarded), base_url="http://worker") as http:
        return await http.get(path)


@pytest.mark.parametrize("scope", Scope)
async def test_whoever_may_do_anything_may_wait_for_what_was_written(scope: Scope) -> None:
    """With the token's name, by which those who wait are counted."""
    answer = await ask([scope], "/v1/applied")
    assert (answer.status_code, answer.json()) == (200, "ann's")


async def test_who_may_do_nothing_waits_for_nothing() -> None:
    answer = await ask([], "/v1/applied")
    assert (answer.status_code, "with any scope" in answer.text) == (403, True)
    assert (await ask([], "/mcp")).status_code == 200, "each tool has a scope of its own"
