"""Trace contexts in the headers of records and requests, as W3C Trace Context has them.

`traceparent` says which span a record was produced in, `tracestate` is what others want to be passed on with it.
Baggage is not read: it may hold anything, and would go into every record.
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
#: What the recommendation has everybody pass on; a longer one is left out, not cut.
LONGEST_STATE: Final = 512


def given(headers: Iterable[tuple[str, bytes | None]]) -> tuple[str, str]:
    """`traceparent` and `tracestate` of a record's headers; empty where there are none."""
    parent = state = ""
    for name, value in headers:
        if name == PARENT:
            parent = (value or b"").decode("ascii", "replace")
        elif name == STATE and value is not None and len(value) <= LONGEST_STATE:
            state = value.decode("ascii", "replace")
    return parent, state


def context_of(parent: str, state: str = "") -> trace.SpanContext | None:
    """What the two say; None where it is no trace context."""
    carrier = {PARENT: parent, STATE: state} if state else {PARENT: parent}
    context = trace.get_current_span(_W3C.extract(carrier, Context())).get_span_context()
    return context if context.is_valid else None


def headers_of(context: trace.SpanContext) -> dict[str, str]:
    """The two headers of a span, the second where there is a state."""
    carrier: dict[str, str] = {}
    _W3C.inject(carrier, trace.set_span_in_context(trace.NonRecordingSpan(context), Context()))
    return carrier


def record_headers(context: trace.SpanContext) -> Headers:
    """The same for a record; none where the context is of no span."""
    if not context.is_valid:
        return ()
    return [(name, value.encode()) for name, value in headers_of(context).items()]
