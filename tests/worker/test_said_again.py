"""What is sent again without an id is there once, where it says when it was said: by every way in, as by Kafka."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import orjson
import pytest

from schemas.settings import Settings
from schemas.times import iso, now_ms
from schemas.topics import key_of
from streams.app import Siltstone
from streams.doors.cli import running
from streams.kafka.bulk import producing
from streams.telemetry.metrics import labelled
from tests.support.api import api
from tests.support.making import START
from tests.support.waiting import until, until_it_is

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


def asked(at: int, session: str = "s") -> list[dict[str, Any]]:
    """A request to remember, its answer, and the end; `at`: epoch ms."""
    whose = {"user_id": "ann", "session_id": session}
    return [
        said(**whose, content="Please remember: my boat is called Seagull", message_id="m1", timestamp=iso(at)),
        said(**whose, role="assistant", content="I will.", message_id="m2", timestamp=iso(at + 1000)),
        {**whose, "type": "session_end", "timestamp": iso(at + 2000)},
    ]


async def sent(worker: Siltstone, records: list[dict[str, Any]]) -> None:
    async with producing(worker.settings.kafka) as producer:
        for record in records:
            await producer.send(key_of("ann"), orjson.dumps(record))
    ends = dict(producer.ends)
    await until(
        lambda: all(worker.hot.committed(worker.topics.conversations).get(p, 0) >= end for p, end in ends.items()),
        alive=worker,
    )


async def memories(http: httpx.AsyncClient) -> list[str]:
    answer = await http.get("/v1/memories", params={"user_id": "ann", "include_all": "true"})
    return [one["id"] for one in answer.json()["memories"]]


@pytest.mark.parametrize("what", ["memory", "source", "user"])
async def test_what_is_forgotten_stays_forgotten(settings: Settings, what: str) -> None:
    """The same messages again, at once and after a restart, also without the end and with more behind them."""
    at = now_ms() - 60_000
    async with running.started(settings) as worker, api(worker) as http:
        await running.until_ready(worker)
        await sent(worker, asked(at))
        await until_it_is(lambda: memories(http), alive=worker)
        (identity,) = await memories(http)
        path = f"/v1/memories/{identity}" if what == "memory" else "/v1/memories"
        source = {"source": "user"} if what == "source" else {}
        assert (await http.delete(path, params={"user_id": "ann", **source, **WAIT})).is_success
        assert await memories(http) == []
        await sent(worker, asked(at))
        assert await contents(http) == []
    async with running.started(settings) as worker, api(worker) as http:
        await running.until_ready(worker)
        hello = said(content="Hello again", message_id="m9", timestamp=iso(now_ms()))
        await sent(worker, [*asked(at)[:2], hello])
        assert await contents(http) == ["Hello again"]
        await sent(worker, asked(at, "another"))
        elsewhere = [one["content"] for one in asked(at)[:2]]
        assert await contents(http, "another") == ([] if what == "user" else elsewhere)
