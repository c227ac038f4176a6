"""The screens of sessions: a list, and the decisions on the exchanges of one session."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from schemas.ids import Id
from streams.doors.http.decisions import decisions_of
from streams.doors.ui.pages import Pages
from streams.doors.ui.people import People, newest_sessions, people_of
from streams.doors.ui.viewer import Looking
from streams.doors.ui.workers import Workers
from streams.intake.rules.scoring import KEEP_ABOVE, RATING
from streams.service import MemoryService


def session_routes(service: MemoryService, workers: Workers, pages: Pages) -> APIRouter:
    """Return the routes of `/ui/sessions` and `/ui/session`, and of the list of this worker's users and sessions."""
    api = APIRouter(include_in_schema=False)

    async def own() -> People:
        async with service.users.own_shards():
            return await people_of(service)

    @api.get("/ui/worker/people")
    async def people() -> People:
        """The users and sessions of this worker."""
        return await own()

    @api.get("/ui/sessions")
    async def sessions(request: Request, viewer: Looking) -> HTMLResponse:
        """The sessions with the newest messages."""
        told = await workers.tell(request, "/ui/worker/people", own)
        return pages.page("sessions.html", viewer, "/ui/sessions", sessions=newest_sessions(told), silent=told.silent)

    @api.get("/ui/session")
    async def session(
        viewer: Looking, user_id: Id, session_id: Id, limit: Annotated[int | None, Query(ge=1, le=1000)] = None
    ) -> HTMLResponse:
        """One session: its window, and the decision on each exchange.

        For each decision, the screen shows the reason, and the change that would lead to another decision.
        """
        found = await decisions_of(service, user_id, session_id, limit)
        window = {
            one.exchange.messages[0].message_id: one.exchange
            for one in service.sessions.window(user_id, session_id, service.settings.memory.capacity)
        }
        return pages.page(
            "session.html",
            viewer,
            "/ui/sessions",
            found=found,
            window=window,
            notes=service.sessions.notes(user_id, session_id),
            now=service.clock.now(),
            keep_above=KEEP_ABOVE,
            rating_weighs=RATING,
        )

    return api
