"""A span for each request, in the caller's trace, named by its route."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from fastapi import FastAPI, HTTPException, Request
from fastapi.testclient import TestClient
from opentelemetry.trace import SpanKind, StatusCode

from streams.doors.http.policies import route_of
from tests.support.spans import KeptSpans, texts_in

TRACE, PARENT = f"{7:032x}", f"00-{7:032x}-{9:016x}-01"


@pytest.fixture
def spans() -> KeptSpans:
    return KeptSpans()


@pytest.fixture
def http(spans: KeptSpans) -> Iterator[TestClient]:
    """An application with some of the worker's routes, behind the middleware."""
    api = FastAPI()

    @api.get("/v1/memories/{memory_id}")
    async def memory(memory_id: str, request: Request) -> dict[str, str | None]:
        if memory_id == "full":
            raise HTTPException(503, "ann's disk is full")
        if memory_id == "broken":
            raise OSError("ann's disk is full")
        return {name: request.headers.get(name) for name in ("traceparent", "tracestate")}

    @api.get("/healthz")
    async def healthz() -> None:
        """It runs."""

    with TestClient(spans.serving(api, route_of), raise_server_exceptions=False) as client:
        yield client


def test_a_request_is_a_span_in_the_trace_that_its_caller_names(http: TestClient, spans: KeptSpans) -> None:
    http.get("/v1/memories/m-1?user_id=ann", headers={"traceparent": PARENT})
    (span,) = spans.each()
    assert (span.name, span.kind) == ("GET /v1/memories/{memory_id}", SpanKind.SERVER)
    assert span.parent is not None
    assert (f"{span.parent.trace_id:032x}", span.parent.span_id) == (TRACE, 9)
    assert span.attributes == {
        "http.request.method": "GET",
        "http.route": "/v1/memories/{memory_id}",
        "http.response.status_code": 200,
        "url.scheme": "http",
    }


def test_what_is_forwarded_goes_on_in_the_requests_own_span(http: TestClient, spans: KeptSpans) -> None:
    """The headers that the application sees are those of the span, with the caller's state."""
    seen = http.get("/v1/memories/1", headers={"traceparent": PARENT, "tracestate": "vendor=1"}).json()
    (span,) = spans.each()
    assert span.context is not None
    assert seen["traceparent"].split("-")[1:3] == [TRACE, f"{span.context.span_id:016x}"]
    assert seen["tracestate"] == "vendor=1"


@pytest.mark.parametrize("given", ["nonsense", f"00-{0:032x}-{0:016x}-01", "é" * 300], ids=["text", "zeros", "bytes"])
def test_a_request_whose_trace_cannot_be_read_begins_one(http: TestClient, spans: KeptSpans, given: str) -> None:
    assert http.get("/v1/memories/1", headers={b"traceparent": given.encode()}).status_code == 200
    (span,) = spans.each()
    assert span.parent is None


def test_neither_paths_nor_questions_are_recorded(http: TestClient, spans: KeptSpans) -> None:
    """They hold ids; where a route is not known, the name is the method."""
    http.get("/v1/sessions/ann-1/nothing?user_id=ann")
    http.get("/v1/memories/ann-2?user_id=ann")
    http.request("BREW", "/v1/ann")
    assert [span.name for span in spans.each()] == ["GET", "GET /v1/memories/{memory_id}", "HTTP"]
    assert "ann" not in texts_in(spans.each())


def test_a_refusal_is_the_callers_and_a_fault_the_workers(http: TestClient, spans: KeptSpans) -> None:
    for memory in ("full", "broken", "1"):
        http.get(f"/v1/memories/{memory}")
    http.get("/nowhere")
    found = [(span.status.status_code, dict(span.attributes or {}).get("error.type")) for span in spans.each()]
    error, unset = StatusCode.ERROR, StatusCode.UNSET
    assert found == [(error, "503"), (error, "OSError"), (unset, None), (unset, None)]
    assert "disk" not in texts_in(spans.each())


def test_probes_are_in_no_trace(http: TestClient, spans: KeptSpans) -> None:
    http.get("/healthz", headers={"traceparent": PARENT})
    assert list(spans.each()) == []
