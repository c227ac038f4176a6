"""A span for each batch that an agent handles, linked to the producers' spans."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Any, NamedTuple

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import SpanKind, StatusCode

from schemas.topics import Headers
from streams.telemetry.batches import MOST_LINKS
from streams.telemetry.recorded import RecordedSpans
from streams.telemetry.spans import NoSpans
from tests.support.spans import KeptSpans

TOPIC = "siltstone.conversations"


class Record(NamedTuple):
    offset: int
    headers: Headers = ()


def produced(offset: int, span: int) -> Record:
    return Record(offset, [("traceparent", f"00-{1:032x}-{span:016x}-01".encode())])


async def nothing_to_wait_for(partition: int, records: Sequence[Any]) -> Awaitable[Any] | None:
    return None


async def test_a_batch_is_one_span_that_says_where_it_lies_and_links_to_its_producers() -> None:
    """Of three records of two producers' spans, and one of nobody's."""
    spans = KeptSpans("workers")
    handle = spans.processing(TOPIC, nothing_to_wait_for)
    await handle(3, [produced(7, 1), produced(8, 1), Record(9), produced(10, 2)])
    (span,) = spans.each()
    assert (span.name, span.kind, span.parent) == (f"process {TOPIC}", SpanKind.CONSUMER, None)
    assert span.attributes == {
        "messaging.system": "kafka",
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.destination.name": TOPIC,
        "messaging.destination.partition.id": "3",
        "messaging.consumer.group.name": "workers",
        "messaging.batch.message_count": 4,
        "siltstone.kafka.offset.first": 7,
        "siltstone.kafka.offset.last": 10,
    }
    linked = [(link.context.span_id, link.attributes) for link in span.links]
    assert linked == [(1, {"messaging.kafka.offset": 7}), (2, {"messaging.kafka.offset": 10})]


async def test_links_are_bounded() -> None:
    spans = KeptSpans()
    await spans.processing(TOPIC, nothing_to_wait_for)(0, [produced(n, n + 1) for n in range(2 * MOST_LINKS)])
    (span,) = spans.each()
    assert len(span.links) == MOST_LINKS


async def test_the_span_ends_when_the_batch_counts_as_processed() -> None:
    """What the handler gives back to be awaited is part of it."""
    spans, written = KeptSpans(), asyncio.get_running_loop().create_future()

    async def handle(partition: int, records: Sequence[Any]) -> Awaitable[Any]:
        return written

    effects = await spans.processing(TOPIC, handle)(0, [Record(0)])
    assert effects is written
    assert list(spans.each()) == []
    written.set_result(None)
    await asyncio.sleep(0)
    assert [span.status.status_code for span in spans.each()] == [StatusCode.UNSET]


@pytest.mark.parametrize("late", [False, True], ids=["at-once", "later"])
async def test_what_fails_is_named_by_its_kind_alone_and_raised(late: bool) -> None:
    spans = KeptSpans()

    async def fail() -> None:
        raise OSError("ann said that the disk is full")

    async def handle(partition: int, records: Sequence[Any]) -> Awaitable[Any] | None:
        if late:
            return fail()
        await fail()
        return None

    async def processed() -> None:
        if (effects := await spans.processing(TOPIC, handle)(0, [Record(0)])) is not None:
            await effects

    with pytest.raises(OSError, match="ann"):
        await processed()
    (span,) = spans.each()
    assert (span.status.status_code, span.status.description, span.events) == (StatusCode.ERROR, None, ())
    assert span.attributes is not None
    assert span.attributes["error.type"] == "OSError"


async def test_a_batch_that_is_given_up_is_a_span_that_says_so() -> None:
    """Its partition was revoked: nobody reads on here."""
    spans, written = KeptSpans(), asyncio.get_running_loop().create_future()

    async def handle(partition: int, records: Sequence[Any]) -> Awaitable[Any]:
        return written

    await spans.processing(TOPIC, handle)(0, [Record(0)])
    written.cancel()
    await asyncio.sleep(0)
    assert [dict(span.attributes or {})["error.type"] for span in spans.each()] == ["CancelledError"]


async def test_what_follows_from_a_record_goes_on_in_the_trace_that_it_came_with() -> None:
    """Else in that of its batch."""
    spans, found = KeptSpans(), list[Headers]()

    async def handle(partition: int, records: Sequence[Any]) -> Awaitable[Any] | None:
        found.extend(map(spans.passed_on, records))
        found.append(spans.outgoing())
        return None

    await spans.processing(TOPIC, handle)(0, [produced(0, 5), Record(1)])
    (span,) = spans.each()
    assert span.context is not None
    ids = f"{span.context.trace_id:032x}-{span.context.span_id:016x}-{span.context.trace_flags:02x}"
    own = [("traceparent", f"00-{ids}".encode())]
    assert [list(headers) for headers in found] == [list(produced(0, 5).headers), own, own]
    assert spans.outgoing() == (), "no batch is handled"


class Unread(NamedTuple):
    """A record whose headers nobody may look at."""

    offset: int

    @property
    def headers(self) -> Headers:
        raise AssertionError("they were looked at")


async def test_headers_are_not_looked_at_for_a_trace_that_is_not_sampled() -> None:
    spans = RecordedSpans(TracerProvider(sampler=ALWAYS_OFF, shutdown_on_exit=False), "workers")
    await spans.processing(TOPIC, nothing_to_wait_for)(0, [Unread(0)])
    assert not trace.get_current_span().is_recording()


def test_while_telemetry_is_off_a_batch_is_handled_by_its_own_handler() -> None:
    """Nothing stands between: it costs no call."""
    assert NoSpans().processing(TOPIC, nothing_to_wait_for) is nothing_to_wait_for
