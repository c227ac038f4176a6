"""All routes of mem0's API."""

from __future__ import annotations

from typing import Any, Final

from fastapi import APIRouter

from streams.doors.http.forwarding import Forwarding
from streams.doors.http.refusals import because
from streams.doors.mem0.changing import changing_routes
from streams.doors.mem0.owners import Owners
from streams.doors.mem0.reading import reading_routes
from streams.doors.mem0.wire import WireRoute
from streams.service import MemoryService

WHOLE: Final = "siltstone"


def mem0_routes(service: MemoryService, forwarding: Forwarding) -> APIRouter:
    """Return the routes that `MemoryClient(host=…, api_key=…)` of the package `mem0ai` calls."""
    api = APIRouter(route_class=WireRoute, responses=because(400, "Why the request cannot be done, in one line"))
    owners = Owners(service)

    @api.get("/v1/ping/", tags=["mem0"])
    async def ping() -> dict[str, Any]:
        """The client calls this in its constructor, which fails without an organization and a project.

        Siltstone has neither, so the answer has one fixed name for both.
        """
        return {"status": "ok", "message": "pong", "org_id": WHOLE, "project_id": WHOLE, "user_email": None}

    api.include_router(reading_routes(service, forwarding, owners))
    api.include_router(changing_routes(service, owners))
    return api
