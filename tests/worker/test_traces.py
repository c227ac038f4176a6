"""A trace goes the whole way: from whoever says something to the memory that it becomes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import aiokafka
import httpx
import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanContext

from schemas.settings import Settings
from schemas.topics import Topics
from streams.app import Siltstone
from streams.doors.cli import running
from streams.kafka.clients.broker import client_options
from tests.support.api import api
from tests.support.making import line
from tests.support.spans import KeptSpans, texts_in


@pytest.fixture
def spans(settings: Settings) -> KeptSpans:
    return KeptSpans(settings.kafka.group_id)


@pytest.fixture
async def worker(settings: Settings, spans: KeptSpans) -> AsyncIterator[Siltstone]:
    siltstone = Siltstone(settings, spans)
    await siltstone.start()
    try:
        await running.until_ready(siltstone)
        yield siltstone
    finally:
        await siltstone.stop()


def trace_of(number: int) -> str:
    return f"00-{number:032x}-{number:016x}-01"


def linked(span: ReadableSpan) -> set[tuple[int, int]]:
    return {(link.context.trace_id, link.context.span_id) for link in span.links}


def ids(context: SpanContext | None) -> tuple[int, int]:
    assert context is not None
    return context.trace_id, context.span_id


async def say(settings: Settings, said: list[tuple[int, str, str]]) -> None:
    """Each in a trace of its own: number, role, content."""
    topic = Topics.with_prefix(settings.kafka.topic_prefix).conversations
    async with aiokafka.AIOKafkaProducer(**client_options(settings.kafka)) as producer:
        for number, role, content in said:
            value = line(number, "ann", role, number, content=content)
            headers = [("traceparent", trace_of(number).encode())]
            await producer.send_and_wait(topic, value, key=b"ann", headers=headers)


async def test_what_is_said_can_be_followed_from_its_producer_into_long_term_memory(
    settings: Settings, worker: Siltstone, spans: KeptSpans
) -> None:
    """The batch is linked to its producers; the promotion goes on in the trace of the message that decided on it."""
    said = [
        (1, "user", "Please remember that my locker opens with 90210."),
        (2, "assistant", "I will remember that."),
        (3, "user", "Please summarize today."),
    ]
    await say(settings, said)
    batches, promoted = f"process {worker.topics.conversations}", f"process {worker.topics.long_term}"
    into_memory = await spans.until(promoted)
    assert linked(into_memory) == {(3, 3)}
    taken_in = spans.named(batches)
    assert set.union(*map(linked, taken_in)) == {(1, 1), (2, 2), (3, 3)}
    assert {dict(span.attributes or {})["messaging.consumer.group.name"] for span in taken_in} == {
        settings.kafka.group_id
    }
    summed_up = await spans.until(f"process {worker.topics.summary_requests}")
    (asked_for,) = linked(summed_up)
    assert asked_for in {ids(span.context) for span in taken_in}
    said_by_spans = texts_in(spans.each())
    assert [word for word in ("locker", "90210", "summarize", "ann") if word in said_by_spans] == []


def parent(span: ReadableSpan) -> tuple[int, int]:
    return ids(span.parent)


async def test_what_is_asked_over_http_is_one_trace_and_what_it_writes_is_linked_to_it(
    worker: Siltstone, spans: KeptSpans
) -> None:
    """The caller's span, the request, the operation on memories; then the batch that brings the memory."""
    headers, memory = {"traceparent": trace_of(9)}, {"user_id": "ann", "text": "My locker opens with 90210."}
    async with api(worker) as client:
        written = await client.post("/v1/memories?wait=applied&timeout=10", json=memory, headers=headers)
        assert written.json()["applied"] is True
        found = await asked(client, {"user_id": "ann", "query": "Which code opens my locker?"}, headers)
    assert found == [memory["text"]]
    (create,), (search,) = spans.named("create_memory"), spans.named("search_memory")
    post, ask = await spans.until("POST /v1/memories"), await spans.until("POST /v1/search")
    assert (parent(create), parent(search)) == (ids(post.context), ids(ask.context))
    assert parent(post) == parent(ask) == (9, 9)
    assert dict(create.attributes or {})["gen_ai.memory.record.id"] == written.json()["event_id"]
    assert dict(search.attributes or {})["gen_ai.memory.record.count"] == 1
    brought = await spans.until(f"process {worker.topics.long_term}")
    assert linked(brought) == {ids(create.context)}
    said_by_spans = texts_in(spans.each())
    assert [word for word in ("locker", "90210", "opens", "ann") if word in said_by_spans] == []


async def asked(client: httpx.AsyncClient, body: dict[str, Any], headers: dict[str, str]) -> list[str]:
    answer = await client.post("/v1/search", json=body, headers=headers)
    return [hit["memory"] for hit in answer.json()["results"]]
