"""A model rewords profiles of a running worker: by HTTP, the command's output and MCP, with a service on loopback."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from schemas.settings import LlmSettings, Settings
from streams.doors.cli import running
from tests.support.api import api
from tests.support.mcp_client import over_http, read
from tests.support.openai_server import Answer, OpenAIServer, Received
from tests.support.quick_commands import siltstone
from tests.support.waiting import until

APPLIED = {"wait": "applied", "timeout": "20"}
WORDS = "Lives in Oslo, works as a nurse"


def answered(asked: Received) -> Answer:
    """The sections' lines, as one text each; about replaced memories, none."""
    if "sections" not in asked.quoted:
        return Answer("0")
    numbers = [line["number"] for line in asked.quoted["sections"][0]["lines"]]
    text = WORDS if len(numbers) > 1 else "lives in Oslo"
    return Answer(json.dumps({"about": [{"lines": numbers, "text": text}]}))


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[OpenAIServer]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    async with OpenAIServer(answered) as running_server:
        yield running_server


def reworded(settings: Settings, **llm: Any) -> Settings:
    recall = settings.recall.model_copy(update={"profile_by_model": True})
    return settings.model_copy(update={"llm": LlmSettings.model_validate(llm), "recall": recall})


async def profile(http: httpx.AsyncClient) -> dict[str, Any]:
    answer = await http.get("/v1/profile", params={"user_id": "ann"})
    found: dict[str, Any] = answer.raise_for_status().json()
    return found


async def remember(http: httpx.AsyncClient, text: str) -> str:
    answer = await http.post("/v1/memories", json={"user_id": "ann", "text": text}, params=APPLIED)
    assert answer.json()["applied"], answer.text
    return str(answer.json()["event_id"])


def asked(server: OpenAIServer) -> int:
    return sum("sections" in one.quoted for one in server.received)


async def test_every_way_in_shows_the_models_words_and_none_of_what_is_forgotten(
    settings: Settings, server: OpenAIServer
) -> None:
    settings = reworded(settings, api_key="sk-test", base_url=server.base_url)
    async with running.started(settings) as worker, api(worker) as http:
        await running.until_ready(worker)
        await remember(http, "I live in Oslo.")
        job = await remember(http, "I work as a nurse.")
        (section,) = (await profile(http))["sections"]
        assert ([line["text"] for line in section["lines"]], section["reworded"]) == ([WORDS], True)
        url = f"http://127.0.0.1:{worker.api.port}"
        command = await siltstone("profile", "ann", "--url", url)
        assert WORDS in command.stdout
        async with over_http(url) as client:
            assert WORDS in await read(client, "siltstone://users/ann/profile")
        assert asked(server) == 1
        gone = await http.delete(f"/v1/memories/{job}", params={"user_id": "ann", **APPLIED})
        assert gone.json()["applied"], gone.text
        assert "nurse" not in json.dumps(await profile(http))
        server.gate.clear()
        await remember(http, "My sister is called Ann.")
        before = asked(server)
        under_way = asyncio.ensure_future(profile(http))
        await until(lambda: asked(server) > before, alive=worker)
        under_way.cancel()  # the worker stops with a question under way


async def test_without_a_key_the_start_says_that_it_has_no_effect(
    settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        async with running.started(reworded(settings)) as worker, api(worker) as http:
            await running.until_ready(worker)
            await remember(http, "I live in Oslo.")
            assert [one["reworded"] for one in (await profile(http))["sections"]] == [False]
    (said,) = [one for one in caplog.messages if "profile_by_model" in one]
    assert said == (
        "recall.profile_by_model has no effect, because there is no API key for a model; set llm.api_key "
        "(any text, if the service needs none)"
    )
