"""The screen that shows live how messages become exchanges, decisions and memories."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any, Final, NamedTuple

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse
from pydantic import BaseModel

from schemas.events import Parts
from streams.doors.ui.pages import Pages
from streams.doors.ui.viewer import Looking
from streams.doors.ui.workers import Workers
from streams.service import MemoryService
from streams.telemetry.activity.message_flow import WATCHED_SECONDS, Kind

#: The maximum number of steps on the screen. It shows the newest steps of all workers.
MOST_SHOWN: Final = 120
_Word = Annotated[str, Query(max_length=256)]


class ShownStep(BaseModel):
    """A step of the flow, in the form in which workers send it to each other."""

    number: int
    at: int
    kind: Kind
    user_id: str
    session_id: str
    text: str
    message_ids: list[str]
    reason: str
    memory_id: str
    importance: float | None
    parts: Parts | None


class Steps(BaseModel):
    """The steps of the flow on one worker, oldest first."""

    steps: list[ShownStep]


class Chosen(NamedTuple):
    """The viewer's filter for the steps of the flow. An empty field matches all steps."""

    user_id: str = ""
    session_id: str = ""
    reason: str = ""
    follow: str = ""

    def takes(self, step: ShownStep) -> bool:
        followed = not self.follow or self.follow in step.message_ids or self.follow == step.memory_id
        return (
            followed
            and self.user_id in ("", step.user_id)
            and self.session_id in ("", step.session_id)
            and (not self.reason or self.reason in (step.kind, step.reason))
        )


def flow_routes(service: MemoryService, workers: Workers, pages: Pages) -> APIRouter:
    """`/ui/flow`."""
    api = APIRouter(include_in_schema=False)

    async def own() -> Steps:
        return Steps(steps=[ShownStep.model_validate(asdict(step)) for step in service.live.flow.look()])

    async def shown(request: Request, chosen: Chosen) -> dict[str, Any]:
        told = await workers.tell(request, "/ui/worker/flow", own)
        steps = [step for one in told.each for step in one.steps]
        found = sorted((step for step in steps if chosen.takes(step)), key=lambda one: (-one.at, -one.number))
        return {
            "steps": found[:MOST_SHOWN],
            "chosen": chosen,
            "silent": told.silent,
            "reasons": sorted({step.reason for step in steps if step.kind != "message" and step.reason}),
        }

    @api.get("/ui/worker/flow")
    async def worker() -> Steps:
        """The steps that this worker has recorded. After this request, it records for `WATCHED_SECONDS` more."""
        return await own()

    @api.get("/ui/flow")
    async def flow(
        request: Request,
        viewer: Looking,
        user_id: _Word = "",
        session_id: _Word = "",
        reason: _Word = "",
        follow: _Word = "",
    ) -> HTMLResponse:
        """The whole screen. The first view starts the recording."""
        values = await shown(request, Chosen(user_id, session_id, reason, follow))
        return pages.page("flow.html", viewer, "/ui/flow", seconds=int(WATCHED_SECONDS), **values)

    @api.get("/ui/flow/steps")
    async def steps(
        request: Request,
        viewer: Looking,
        user_id: _Word = "",
        session_id: _Word = "",
        reason: _Word = "",
        follow: _Word = "",
    ) -> HTMLResponse:
        """Only the list."""
        return pages.part(
            "flow_steps.html", viewer, **await shown(request, Chosen(user_id, session_id, reason, follow))
        )

    return api
