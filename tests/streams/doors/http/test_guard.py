"""What stands before all routes where tokens are asked for."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import fastapi
import httpx
import pytest

from schemas import halves
from schemas.tokens import Scope
from streams.access.admission import Admission
from streams.access.authorize import Principal
from streams.doors.http.guard import Guard
from streams.doors.http.request_reading import Plain
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


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"content": "hi"}, 200),
        ({"content": "hi", "user_id": "ann"}, 200),
        ({"content": "hi", "user_id": "ann", "userId": "ann"}, 422),
        ({"content": "hi", "user_id": "bob"}, 404),
    ],
)
async def test_two_layers_read_a_body_and_it_is_parsed_once(
    body: dict[str, str], status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed, mended = list[bytes](), halves.mended

    def counting(raw: bytes) -> tuple[Any, bytes]:
        parsed.append(raw)
        return mended(raw)

    api = fastapi.FastAPI()

    @api.post("/v1/messages")
    async def said(given: dict[str, str]) -> dict[str, str]:
        return given

    monkeypatch.setattr("schemas.halves.mended", counting)
    monkeypatch.setattr("streams.doors.http.request_reading.mended", counting)
    guarded = Guard(Plain(api), Everybody(list(Scope)), open_probes=True)
    async with httpx.AsyncClient(transport=httpx.ASGITransport(guarded), base_url="http://worker") as http:
        answer = await http.post("/v1/messages", json=body)
    assert (answer.status_code, len(parsed)) == (status, 1)
    if status == 200:
        assert answer.json() == {**body, "user_id": "ann"}
