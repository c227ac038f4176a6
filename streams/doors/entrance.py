"""The middleware in front of all routes. Outer layers run before inner layers, and read less of the request."""

from __future__ import annotations

from fastapi import FastAPI

from schemas.settings import Settings
from streams.access.admission import Admission
from streams.doors.http.body_limits import Bodies
from streams.doors.http.failures import answer_failures
from streams.doors.http.guard import Guard
from streams.doors.http.hosts import Hosts
from streams.doors.http.policies import route_of
from streams.doors.http.request_reading import Plain
from streams.doors.ui.door import Door
from streams.telemetry.spans import Spans


def put_before(api: FastAPI, settings: Settings, admission: Admission | None, spans: Spans) -> None:
    """Add the middleware layers to the API, beginning with the innermost layer.

    From the outermost to the innermost, the layers answer failures, open a span, check the host and the page that
    sent the request, limit the body, turn the dashboard's cookie into a token, check the token, and check the content
    of the body.
    """
    # In Starlette, the layer that is added last is the outermost one.
    api.add_middleware(Plain)
    if admission is not None:
        api.add_middleware(Guard, admission=admission, open_probes=settings.access.open_probes)
    if settings.http.dashboard:
        # `Door` turns the dashboard's cookie into a token. It must run after `Hosts`, which refuses requests from
        # pages of other sites, and before `Guard`, which checks the token.
        api.add_middleware(Door, tokens=admission is not None)
    api.add_middleware(Bodies)
    api.add_middleware(Hosts, http=settings.http, tokens=admission is not None)
    if spans.on:
        # This layer is outside of all checks, so that refused requests also have a span.
        api.add_middleware(spans.serving, route_of=route_of)
    answer_failures(api)
