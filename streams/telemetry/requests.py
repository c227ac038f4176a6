"""A span for each HTTP request, in the trace that the header `traceparent` of the request names.

The name of the span has the route's template. The path and the query are not recorded, because they contain ids of
sessions, memories and users. The request's headers get the context of this span. So if the request is forwarded, the
worker that receives it continues the trace.
"""

from __future__ import annotations

from typing import Final

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import SpanKind, Status, StatusCode, Tracer
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from streams.telemetry.faults import failed
from streams.telemetry.spans import RouteOf
from streams.telemetry.trace_context import PARENT, STATE, context_of, given, headers_of

METHODS: Final = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})
#: Paths that get no spans. They are requested every few seconds, so most of all spans would be about these paths.
PROBES: Final = frozenset({"/healthz", "/readyz", "/metrics"})


class TracedRequests:
    """ASGI middleware that makes a span for each HTTP request."""

    def __init__(self, app: ASGIApp, tracer: Tracer, route_of: RouteOf) -> None:
        self._app, self._tracer, self._route_of = app, tracer, route_of

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] in PROBES:
            await self._app(scope, receive, send)
            return
        headers = [(name.decode("latin-1"), value) for name, value in scope["headers"]]
        parent = context_of(*given(headers))
        context = (
            Context() if parent is None else trace.set_span_in_context(trace.NonRecordingSpan(parent), Context())
        )
        route = self._route_of(scope["method"], scope["path"])
        method = scope["method"] if scope["method"] in METHODS else "_OTHER"
        attributes = {"http.request.method": method, "url.scheme": scope["scheme"]}
        if route is not None:
            attributes["http.route"] = route
        shown = "HTTP" if method == "_OTHER" else method
        span = self._tracer.start_span(
            f"{shown} {route}" if route else shown, context=context, kind=SpanKind.SERVER, attributes=attributes
        )

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                status = message["status"]
                span.set_attribute("http.response.status_code", status)
                if status >= 500:
                    span.set_attribute("error.type", str(status))
                    span.set_status(Status(StatusCode.ERROR))
            await send(message)

        kept = [(name, value) for name, value in scope["headers"] if name.decode("latin-1") not in (PARENT, STATE)]
        own = [(name.encode(), value.encode()) for name, value in headers_of(span.get_span_context()).items()]
        with trace.use_span(span, end_on_exit=True, record_exception=False, set_status_on_exception=False):
            try:
                await self._app({**scope, "headers": kept + own}, receive, sent)
            except BaseException as exc:
                failed(span, exc)
                raise
