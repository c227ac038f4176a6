"""What is sent again without an id is there once, where it says when it was said: by every way in, as by Kafka."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import orjson
import pytest

from schemas.settings import Settings
from schemas.times import iso
from schemas.topics import key_of
from streams.app import Siltstone
from streams.cli import running
from streams.cli.ingest import producing
from streams.metrics import labelled
from tests.support.api import api
from tests.support.making import START
from tests.support.waiting import until

pytestmark = pytest.mark.slow
WAIT = {"wait": "applied", "timeout": "20"}


@pytest.fixture
async def worker(settings: Settings) -> AsyncIterator[Siltstone]:
    async with running.started(settings) as siltstone:
        await running.until_ready(siltstone)
        yield siltstone


def said(**more: Any) -> dict[str, Any]:
    whose = {"user_id": "ann", "session_id": "s"}
    return {**whose, "role": "user", "content": "I row on Sundays", "timestamp": iso(START), **more}


async def contents(http: httpx.AsyncClient, session: str = "s") -> list[str]:
    answer = await http.get(f"/v1/sessions/{session}/exchanges", params={"user_id": "ann"})
    return [message["content"] for one in answer.json()["exchanges"] for message in one["messages"]]


async def test_by_http_and_by_kafka_it_is_one_message(worker: Siltstone) -> None:
    async with api(worker) as http:
        first = (await http.post("/v1/messages", json=said(), params=WAIT)).json()
        again = (await http.post("/v1/messages", json=[said(), said()], params=WAIT)).json()
        assert {one["event_id"] for one in again["accepted"]} == {first["event_id"]}
        async with producing(worker.settings.kafka) as producer:
            await producer.send(key_of("ann"), orjson.dumps(said()))
        body = {"messages": [{"role": "user", "content": said()["content"], "timestamp": iso(START)}]}
        await http.post("/v3/memories/add/", json={**body, "user_id": "ann", "run_id": "s"})
        await until(lambda: labelled(worker.metrics.duplicates) == {(): 4}, alive=worker)
        assert await contents(http) == [said()["content"]]
        other = said(timestamp=iso(START + 1000))
        await http.post("/v1/messages", json=other, params=WAIT)
        assert len(await contents(http)) == 2
        undated = {name: value for name, value in said(session_id="t").items() if name != "timestamp"}
        for _ in range(2):
            await http.post("/v1/messages", json=undated, params=WAIT)
        assert len(await contents(http, "t")) == 2, "said twice without a time, it may have been said twice"


@pytest.mark.parametrize("infer", [True, False])
async def test_by_mem0s_wire_it_is_one_memory(worker: Siltstone, infer: bool) -> None:
    talk = [
        {"role": "user", "content": "Please remember: I am allergic to walnuts"},
        {"role": "assistant", "content": "Noted: no walnuts."},
    ]
    body = {"messages": talk, "user_id": "ann", "infer": infer, "timestamp": START // 1000}
    async with api(worker) as http:

        async def add() -> int:
            answer = await http.post("/v3/memories/add/", json=body)
            assert answer.status_code == 200, answer.text
            found = await http.post("/v3/memories/", json={"filters": {"user_id": "ann"}})
            return len(found.json()["results"])

        once = await add()
        assert once == (1 if infer else 2)
        assert await add() == once
