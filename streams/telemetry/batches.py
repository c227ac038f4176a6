"""A span for each batch that an agent handles, linked to the spans in which its records were produced.

A span for each record would cost more than the processing of the record. The records of a batch come from the spans
of many producers, so none of these spans can be the parent. The span records the offsets and the size of the batch.
It records no key, because a key is a user's id, and no value.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanContext, SpanKind, Tracer

from streams.runtime.batch_handler import BatchHandler
from streams.telemetry.faults import failed
from streams.telemetry.trace_context import context_of, given

#: The maximum number of links of one span. Each link leads to a span in which a producer wrote records of the batch.
#: OpenTelemetry's SDK has the same limit.
MOST_LINKS: Final = 128


def processing(tracer: Tracer, group_id: str, topic: str, handle: BatchHandler) -> BatchHandler:
    """Wrap `handle`, so that each batch gets a span. The span ends when the batch counts as processed."""
    constant = {
        "messaging.system": "kafka",
        "messaging.operation.name": "process",
        "messaging.operation.type": "process",
        "messaging.destination.name": topic,
        "messaging.consumer.group.name": group_id,
    }

    async def processed(partition: int, records: Sequence[Any]) -> Awaitable[Any] | None:
        if not records:
            return await handle(partition, records)
        span = tracer.start_span(
            f"process {topic}",
            context=Context(),
            kind=SpanKind.CONSUMER,
            attributes={
                **constant,
                "messaging.destination.partition.id": str(partition),
                "messaging.batch.message_count": len(records),
                "siltstone.kafka.offset.first": records[0].offset,
                "siltstone.kafka.offset.last": records[-1].offset,
            },
        )
        if span.is_recording():  # if the trace is not sampled, the headers need not be read
            for context, attributes in links(records):
                span.add_link(context, attributes)
        try:
            with trace.use_span(span, record_exception=False, set_status_on_exception=False):
                effects = await handle(partition, records)
        except BaseException as exc:
            failed(span, exc)
            span.end()
            raise
        if effects is None:
            span.end()
            return None
        done = asyncio.ensure_future(effects)
        done.add_done_callback(partial(_ended, span))
        return done

    return processed


def links(records: Sequence[Any]) -> Iterator[tuple[SpanContext, Mapping[str, int]]]:
    """Yield each span in which records of the batch were produced, with the offset of the span's first record."""
    seen = set[str]()
    for record in records:
        if not record.headers:
            continue
        parent, state = given(record.headers)
        if not parent or parent in seen:
            continue
        seen.add(parent)
        if (context := context_of(parent, state)) is not None:
            yield context, {"messaging.kafka.offset": record.offset}
        if len(seen) == MOST_LINKS:
            return


def _ended(span: Span, effects: asyncio.Future[Any]) -> None:
    if effects.cancelled():
        failed(span, asyncio.CancelledError())
    elif (exc := effects.exception()) is not None:
        failed(span, exc)
    span.end()
