"""Trace contexts in headers: taken where they are one, passed on as they came, and never an error."""

from __future__ import annotations

import pytest

from streams.telemetry.trace_context import context_of, given, record_headers

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = f"00-{TRACE}-{SPAN}-01"


def test_what_comes_in_a_records_headers_goes_out_the_same() -> None:
    headers = [("other", b"1"), ("traceparent", PARENT.encode()), ("tracestate", b"vendor=1")]
    context = context_of(*given(headers))
    assert context is not None
    assert (f"{context.trace_id:032x}", f"{context.span_id:016x}", context.is_remote) == (TRACE, SPAN, True)
    assert list(record_headers(context)) == headers[1:]


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"",
        b"nonsense",
        b"\xff\xfe",
        PARENT.replace(TRACE, "0" * 32).encode(),
        PARENT.encode()[:-4],
        b"0" * 70_000,
    ],
    ids=["null", "empty", "text", "bytes", "no-trace", "cut", "long"],
)
def test_what_is_no_trace_context_is_none(value: bytes | None) -> None:
    assert context_of(*given([("traceparent", value), ("tracestate", b"vendor=1")])) is None


@pytest.mark.parametrize("state", [None, b"\xff", b"=", b"a=1," * 200], ids=["null", "bytes", "no-name", "long"])
def test_a_state_that_is_none_is_left_out_and_the_context_stays(state: bytes | None) -> None:
    context = context_of(*given([("tracestate", state), ("traceparent", PARENT.encode())]))
    assert context is not None
    assert list(record_headers(context)) == [("traceparent", PARENT.encode())]
