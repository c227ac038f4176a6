"""The client beside a real worker: what it says is read, what fails is an error, what is sent again is there once."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from schemas.places import Place
from schemas.settings import Settings
from schemas.topics import partition_of
from siltstone_client import AsyncMemory, Memory, Retries, Unavailable, Unreachable
from siltstone_client.kafka import MessageProducer
from streams.app import Siltstone
from streams.doors.cli import running
from tests.client.story import every_method
from tests.support.ports import free_port
from tests.support.waiting import CLIENT_SECONDS

QUICK = Retries(attempts=3, first=0.01, longest=0.02)


@pytest.fixture
async def worker(settings: Settings) -> AsyncIterator[Siltstone]:
    async with running.started(settings) as siltstone:
        await running.until_ready(siltstone)
        yield siltstone


def url_of(worker: Siltstone) -> str:
    return f"http://127.0.0.1:{worker.api.port}"


class Flaky(httpx.AsyncBaseTransport):
    """Loses the answers of the first attempts, which have arrived; keeps what was asked."""

    def __init__(self, lost: int) -> None:
        self.inner, self.lost, self.seen = httpx.AsyncHTTPTransport(), lost, list[httpx.Request]()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.seen.append(request)
        answer = await self.inner.handle_async_request(request)
        if len(self.seen) <= self.lost:
            await answer.aread()
            await answer.aclose()
            raise httpx.ReadError("lost", request=request)
        return answer

    async def aclose(self) -> None:
        await self.inner.aclose()


def answering(*answers: httpx.Response) -> tuple[httpx.MockTransport, list[httpx.Request]]:
    seen = list[httpx.Request]()

    def handle(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return answers[min(len(seen), len(answers)) - 1]

    return httpx.MockTransport(handle), seen


async def test_every_method_beside_a_worker(worker: Siltstone) -> None:
    async with AsyncMemory(url_of(worker), timeout=CLIENT_SECONDS) as memory:
        await every_method(memory)


async def test_the_waiting_client_says_and_finds(worker: Siltstone) -> None:
    def ask() -> tuple[str, str]:
        with Memory(url_of(worker), timeout=CLIENT_SECONDS) as memory:
            memory.remember("I live in Oslo", user_id="ann", wait=20)
            memory.add({"role": "user", "content": "Hello"}, user_id="ann", session_id="s", wait=20)
            context = memory.context(user_id="ann", session_id="s", query="where does she live?")
            return memory.search("where does she live?", user_id="ann").results[0].memory, context.prompt

    found, prompt = await asyncio.to_thread(ask)
    assert found == "I live in Oslo"
    assert "Oslo" in prompt


async def test_what_is_sent_again_after_a_lost_answer_is_there_once(worker: Siltstone) -> None:
    for lost in (1, 2):
        transport = Flaky(lost)
        async with AsyncMemory(url_of(worker), timeout=CLIENT_SECONDS, retries=QUICK, transport=transport) as memory:
            await memory.add({"role": "user", "content": f"said {lost}"}, user_id="u", session_id="s", wait=20)
            assert len(transport.seen) == lost + 1
            shown = await memory.exchanges(user_id="u", session_id="s")
            said = [one.content for exchange in shown.exchanges for one in exchange.messages]
            assert said == [f"said {n}" for n in range(1, lost + 1)]
    transport = Flaky(1)
    async with AsyncMemory(url_of(worker), timeout=CLIENT_SECONDS, retries=QUICK, transport=transport) as memory:
        await memory.remember("Bees", user_id="u", wait=20)
        assert len(transport.seen) == 2
        assert (await memory.list(user_id="u")).total == 1


async def test_a_forget_that_is_sent_again_leaves_what_was_put_meanwhile(worker: Siltstone) -> None:
    """An item has no tombstone: its key may be written again."""
    key, transport = uuid.uuid4(), Flaky(0)
    async with (
        AsyncMemory(url_of(worker), timeout=CLIENT_SECONDS, transport=transport) as memory,
        httpx.AsyncClient(timeout=CLIENT_SECONDS, trust_env=False) as http,
    ):

        async def put(text: str) -> None:
            body = {"user_id": "u", "text": text, "kind": "item", "memory_id": str(key)}
            (await http.post(f"{url_of(worker)}/v1/memories?wait=applied", json=body)).raise_for_status()

        await put("before")
        await memory.forget(key, user_id="u", wait=20)
        (first,) = transport.seen
        await put("meanwhile")
        (await http.request(first.method, first.url)).raise_for_status()
        assert [one.memory for one in (await memory.list(user_id="u")).memories] == ["meanwhile"]


def test_nobody_there_is_an_error_and_never_an_empty_list() -> None:
    with (
        Memory(f"http://127.0.0.1:{free_port()}", retries=QUICK) as memory,
        pytest.raises(Unreachable) as raised,
    ):
        memory.search("x", user_id="u")
    assert not raised.value.sent


def test_how_similar_related_memories_are_is_the_workers_unless_it_is_said() -> None:
    """Only the worker knows its embedding model."""
    memory_id = uuid.uuid4()
    transport, seen = answering(httpx.Response(200, json={"id": str(memory_id), "related": []}))
    with Memory(transport=transport) as memory:
        memory.related(memory_id, user_id="ann")
        memory.related(memory_id, user_id="ann", min_similarity=0.0)
    assert [request.url.params.get("min_similarity") for request in seen] == [None, "0.0"]


def test_a_503_is_asked_again_and_an_edit_is_not() -> None:
    away = httpx.Response(503, json={"detail": "moving"}, headers={"Retry-After": "0"})
    found: dict[str, Any] = {"results": [], "better_elsewhere": {}}
    transport, seen = answering(away, httpx.Response(200, json=found))
    with Memory(token="slt_secret", retries=QUICK, transport=transport) as memory:
        assert memory.search("x", user_id="u").results == []
    assert [one.headers["authorization"] for one in seen] == ["Bearer slt_secret"] * 2
    transport, seen = answering(away)
    with Memory(retries=QUICK, transport=transport) as memory, pytest.raises(Unavailable) as raised:
        memory.update("00000000-0000-0000-0000-000000000001", user_id="u", text="x")
    assert (len(seen), raised.value.retry_after, "moving" in str(raised.value)) == (1, 0.0, True)


async def test_what_the_producer_sends_lies_where_the_worker_looks(worker: Siltstone) -> None:
    kafka, topic = worker.settings.kafka, worker.topics.conversations
    tokens = {}
    async with MessageProducer(kafka.bootstrap_servers, topic=topic, client_id="phone") as producer:
        for user in ("ann", "bob", "李雷", "ü" * 40):
            sent = await producer.send({"role": "user", "content": f"of {user}"}, user_id=user, session_id="s")
            assert sent.partition == partition_of(user, kafka.partitions)
            tokens[user] = Place(sent.topic, sent.partition, sent.offset).token
    async with AsyncMemory(url_of(worker), timeout=CLIENT_SECONDS) as memory:
        for user, token in tokens.items():
            shown = await memory.exchanges(user_id=user, session_id="s", at_least=token)
            assert shown.exchanges[0].messages[0].content == f"of {user}"
    (skew,) = worker.metrics.clock_skew.collect()
    assert [sample.labels for sample in skew.samples] == [{"producer": "phone"}]
