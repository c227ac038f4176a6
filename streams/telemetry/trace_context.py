"""Trace contexts in the headers of records and requests, by W3C Trace Context.

`traceparent` names the span in which a record was produced; `tracestate` is other systems' data to pass on with it.
Baggage is not read: it may contain anything, and would go into every record.
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
#: The length that the recommendation requires to be passed on; a longer state is left out, not cut.
LONGEST_STATE: Final = 512


def given(headers: Iterable[tuple[str, bytes | None]]) -> tuple[str, str]:
    """Return `traceparent` and `tracestate` of the headers; empty if missing."""
    parent = state = ""
    for name, value in headers:
        if name == PARENT:
            parent = (value or b"").decode("ascii", "replace")
        elif name == STATE and value is not None and len(value) <= LONGEST_STATE:
            state = value.decode("ascii", "replace")
    return parent, state


def context_of(parent: str, state: str = "") -> trace.SpanContext | None:
    """Return the span context of the two headers; None if they are not valid."""
    carrier = {PARENT: parent, STATE: state} if state else {PARENT: parent}
    context = trace.get_current_span(_W3C.extract(carrier, Context())).get_span_context()
    return context if context.is_valid else None


def headers_of(context: trace.SpanContext) -> dict[str, str]:
    """Return the headers of a span: `traceparent`, and `tracestate` if it has a state."""
    carrier: dict[str, str] = {}
    _W3C.inject(carrier, trace.set_span_in_context(trace.NonRecordingSpan(context), Context()))
    return carrier


def record_headers(context: trace.SpanContext) -> Headers:
    """Return the same for a record; empty if the context is of no span."""
    if not context.is_valid:
        return ()
    return [(name, value.encode()) for name, value in headers_of(context).items()]
