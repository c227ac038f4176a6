"""The middleware in front of all routes. An outer layer needs less than an inner one, and reads less of a request."""

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
    """Add the layers, outermost first: failures of any layer, host and page, body, token, and the body's content."""
    # Starlette puts the layer that is added last outermost.
    api.add_middleware(Plain)
    if admission is not None:
        api.add_middleware(Guard, admission=admission, open_probes=settings.access.open_probes)
    if settings.http.dashboard:
        # It turns a cookie into a token, so it runs after `Hosts` has checked the page and before `Guard`.
        api.add_middleware(Door, tokens=admission is not None)
    api.add_middleware(Bodies)
    api.add_middleware(Hosts, http=settings.http, tokens=admission is not None)
    if spans.on:  # outside of all checks, so that refused requests have a span as well
        api.add_middleware(spans.serving, route_of=route_of)
    answer_failures(api)
