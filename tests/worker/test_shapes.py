"""Messages of every shape, by every way into a worker: what is kept is the same, and the rest is told."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from schemas.settings import Settings
from schemas.times import iso
from schemas.topics import key_of
from siltstone_client import AsyncMemory, InvalidRequest
from siltstone_client.kafka import MessageProducer
from streams.app import Siltstone
from streams.doors.cli import running
from streams.kafka.bulk import producing
from streams.telemetry.metrics import labelled
from tests.support.api import api
from tests.support.making import START
from tests.support.shapes import NOTHING, SHAPES, Refused, Said
from tests.support.waiting import CLIENT_SECONDS, until

pytestmark = pytest.mark.slow
EXPECTED = [shape for _, shape in SHAPES if isinstance(shape, Said)]
JSON = {"Content-Type": "application/json"}


@pytest.fixture
async def worker(settings: Settings) -> AsyncIterator[Siltstone]:
    async with running.started(settings) as siltstone:
        await running.until_ready(siltstone)
        yield siltstone


def spoken(session: str | None = None) -> list[dict[str, Any]]:
    """All shapes, a second apart."""
    whose = {"user_id": "ann", "session_id": session} if session else {}
    return [{**whose, "timestamp": iso(START + 1000 * place), **message} for place, (message, _) in enumerate(SHAPES)]


async def kept(http: httpx.AsyncClient, session: str) -> list[Said]:
    params = {"user_id": "ann"}
    answer = await http.get(f"/v1/sessions/{session}/exchanges", params=params)
    exchanges = answer.json()["exchanges"]
    return [Said(said["role"], said["content"]) for one in exchanges for said in one["messages"]]


async def test_by_http_a_list_is_taken_but_for_what_is_told(worker: Siltstone) -> None:
    async with api(worker) as http:
        body = json.dumps(spoken("s"))
        answer = await http.post(
            "/v1/messages", content=body, headers=JSON, params={"wait": "applied", "timeout": "20"}
        )
        assert answer.status_code == 202, answer.text
        assert await kept(http, "s") == EXPECTED
        told = {one["index"]: (one["kind"], one["detail"]) for one in answer.json()["not_taken"]}
        assert len(answer.json()["accepted"]) == len(EXPECTED)
    assert told.keys() == {place for place, (_, shape) in enumerate(SHAPES) if not isinstance(shape, Said)}
    for place, (kind, detail) in told.items():
        shape = SHAPES[place][1]
        assert kind == ("nothing_said" if shape is NOTHING else "invalid_fields")
        assert not isinstance(shape, Refused) or shape.why in detail


async def test_by_http_one_is_taken_or_refused(worker: Siltstone) -> None:
    async with api(worker) as http:
        for message, (_, shape) in zip(spoken("s"), SHAPES, strict=True):
            answer = await http.post("/v1/messages", content=json.dumps(message), headers=JSON)
            assert answer.status_code == (202 if isinstance(shape, Said) else 422), (message, answer.text)
            if isinstance(shape, Refused):
                assert shape.why in answer.json()["detail"]
        await until(lambda: sum(labelled(worker.metrics.messages).values()) == len(EXPECTED), alive=worker)
        assert await kept(http, "s") == EXPECTED


async def test_a_list_of_which_nothing_can_be_taken_is_refused(worker: Siltstone) -> None:
    async with api(worker) as http:
        body = [{**spoken("s")[0], "role": "robot"}, {**spoken("s")[0], "content": None}, 7]
        answer = await http.post("/v1/messages", json=body)
        assert answer.status_code == 422
        assert [one[:2] for one in answer.json()["detail"].split("; ")] == ["0.", "1.", "2."]
        assert (await http.post("/v1/messages", json=[*body, {**spoken("s")[0]}])).status_code == 202


async def test_halves_of_characters_are_mended_in_every_field(worker: Siltstone) -> None:
    async with api(worker) as http:
        said = {**spoken("s")[0], "name": "Ann \ud83d", "metadata": {"mood\udc4d": ["\ud83d", {"a": "\ude00"}]}}
        answer = await http.post(
            "/v1/messages", content=json.dumps(said), headers=JSON, params={"wait": "applied", "timeout": "20"}
        )
        assert answer.status_code == 202, answer.text
        shown = await http.get("/v1/sessions/s/exchanges", params={"user_id": "ann"})
        assert shown.json()["exchanges"][0]["messages"][0]["name"] == "Ann \ufffd"


async def test_by_kafka_and_by_the_producer(worker: Siltstone) -> None:
    """What is wrong is a dead letter, and the producer does not send it; what says nothing is passed over."""
    wrong = sum(isinstance(shape, Refused) for _, shape in SHAPES)
    wordless = sum(shape is NOTHING for _, shape in SHAPES)
    async with producing(worker.settings.kafka) as producer:
        for message in spoken("raw"):
            await producer.send(key_of("ann"), json.dumps(message).encode())
    kafka, unsent = worker.settings.kafka, []
    async with MessageProducer(kafka.bootstrap_servers, topic=worker.topics.conversations) as client:
        for place, message in enumerate(spoken()):
            try:
                await client.send(message, user_id="ann", session_id="client")
            except ValueError as exc:
                unsent.append((SHAPES[place][1], str(exc)))
    assert all(isinstance(shape, Refused) and shape.why in why for shape, why in unsent)
    assert len(unsent) >= 8
    letters = 2 * wrong - len(unsent)
    async with api(worker) as http:
        await until(lambda: sum(labelled(worker.metrics.messages).values()) == 2 * len(EXPECTED), alive=worker)
        assert await kept(http, "raw") == await kept(http, "client") == EXPECTED
    assert labelled(worker.metrics.wordless) == {(): 2 * wordless}
    await until(lambda: sum(labelled(worker.metrics.dead_letters).values()) == letters, alive=worker)


async def test_by_the_client(worker: Siltstone) -> None:
    async with AsyncMemory(f"http://127.0.0.1:{worker.api.port}", timeout=CLIENT_SECONDS) as memory:
        answer = await memory.add(spoken(), user_id="ann", session_id="s", wait=20)
        assert len(answer.accepted) + len(answer.not_taken) == len(SHAPES)
        shown = await memory.exchanges(user_id="ann", session_id="s")
        said = [Said(one.role, one.content) for exchange in shown.exchanges for one in exchange.messages]
        assert said == EXPECTED
        with pytest.raises(InvalidRequest, match="has no words"):
            await memory.add({"role": "user", "content": ""}, user_id="ann", session_id="s")


async def test_by_mem0s_wire(worker: Siltstone) -> None:
    async with api(worker) as http:
        body = {"messages": spoken(), "user_id": "ann", "run_id": "s"}
        answer = await http.post("/v3/memories/add/", content=json.dumps(body), headers=JSON)
        assert answer.status_code == 200, answer.text
        assert await kept(http, "s") == EXPECTED
        wrong = [shape for _, shape in SHAPES if isinstance(shape, Refused)]
        told = answer.json()["not_taken"]
        assert len(told) == len(wrong)
        assert sorted(shape.why for shape in wrong) == sorted(
            next(why for why in ("role", "32768 bytes", "content") if why in one) for one in told
        )
        nothing = {"messages": [{"role": "robot", "content": "x"}, {"role": "user", "content": None}], "user_id": "a"}
        refused = await http.post("/v3/memories/add/", json=nothing)
        assert (refused.status_code, "role" in refused.json()["detail"]) == (400, True)
        kept_as_is = {"messages": spoken(), "user_id": "bob", "infer": False}
        answer = await http.post("/v3/memories/add/", content=json.dumps(kept_as_is), headers=JSON)
        assert answer.status_code == 200, answer.text
        assert len(answer.json()["not_taken"]) == len(wrong)
