"""Trace contexts in the headers of records and requests, by W3C Trace Context.

`traceparent` names the span in which a record was produced. `tracestate` has data of other systems, which is passed
on. Baggage is not read, because it may contain any data, and would go into every record.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from schemas.topics import Headers

_W3C: Final = TraceContextTextMapPropagator()
PARENT, STATE = "traceparent", "tracestate"
#: The maximum length of `tracestate` in bytes. W3C Trace Context requires that values up to this length are passed
#: on. A longer value is not cut, but left out.
LONGEST_STATE: Final = 512


def given(headers: Iterable[tuple[str, bytes | None]]) -> tuple[str, str]:
    """Return the values of `traceparent` and `tracestate` in the headers. A missing value is ""."""
    parent = state = ""
    for name, value in headers:
        if name == PARENT:
            parent = (value or b"").decode("ascii", "replace")
        elif name == STATE and value is not None and len(value) <= LONGEST_STATE:
            state = value.decode("ascii", "replace")
    return parent, state


def context_of(parent: str, state: str = "") -> trace.SpanContext | None:
    """Return the span context of `traceparent` and `tracestate`, or None if their values are not valid."""
    carrier = {PARENT: parent, STATE: state} if state else {PARENT: parent}
    context = trace.get_current_span(_W3C.extract(carrier, Context())).get_span_context()
    return context if context.is_valid else None


def headers_of(context: trace.SpanContext) -> dict[str, str]:
    """Return the headers of a span: `traceparent`, and `tracestate` if it has a state."""
    carrier: dict[str, str] = {}
    _W3C.inject(carrier, trace.set_span_in_context(trace.NonRecordingSpan(context), Context()))
    return carrier


def record_headers(context: trace.SpanContext) -> Headers:
    """Return the headers of a span in the form that a Kafka record needs; empty if the context is not valid."""
    if not context.is_valid:
        return ()
    return [(name, value.encode()) for name, value in headers_of(context).items()]
