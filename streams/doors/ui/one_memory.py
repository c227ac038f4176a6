"""The screen of one memory: its text, its future score, its origin, and similar memories."""

from __future__ import annotations

import uuid
from operator import attrgetter
from typing import Any, Final

from fastapi import APIRouter
from fastapi.responses import HTMLResponse

from schemas.ids import Id
from schemas.lifecycle import DAY_MS, half_life_of, score_of
from schemas.memories import Memory
from schemas.settings import LifecycleSettings
from streams.doors.http.memories import history_of
from streams.doors.http.relations import related_of
from streams.doors.http.shown import ShownMemory
from streams.doors.ui.actions import SAID
from streams.doors.ui.pages import Pages
from streams.doors.ui.viewer import Looking
from streams.service import MemoryService

#: The length of the score curve, in days.
DAYS_AHEAD: Final = 365
_STEP: Final = 3
_RELATED: Final = 8


def one_memory_routes(service: MemoryService, pages: Pages) -> APIRouter:
    """`/ui/memories/{memory_id}`."""
    api = APIRouter(include_in_schema=False)
    lifecycle = service.settings.lifecycle

    @api.get("/ui/memories/{memory_id}")
    async def memory(viewer: Looking, memory_id: uuid.UUID, user_id: Id, said: str = "") -> HTMLResponse:
        """The screen. Showing a memory does not count as an access."""
        archived = await service.users.ask(user_id, lambda shard: shard.archive.find(user_id, memory_id))
        found = archived or await service.one(user_id, memory_id)
        now = await service.moment()
        related = None if archived else await related_of(service, user_id, found.id, _RELATED, attrgetter("shown"))
        return pages.page(
            "memory.html",
            viewer,
            "/ui/memories",
            user_id=user_id,
            memory=ShownMemory.of(found, now, lifecycle),
            archived=archived is not None,
            curve=curve_of(found, now, lifecycle),
            half_life_days=round(half_life_of(found.importance, lifecycle)),
            fresh_days=lifecycle.fresh_days,
            past=(await history_of(service, found)).events,
            related=related.related if related else [],
            said=SAID.get(said, ""),
        )

    return api


def curve_of(memory: Memory, now: int, lifecycle: LifecycleSettings) -> dict[str, Any]:
    """Return the data of a chart: the memory's future score without an access, and the states' minimum scores."""
    moments = [now + day * DAY_MS for day in range(0, DAYS_AHEAD + 1, _STEP)]
    return {
        "kind": "days",
        "unit": "score",
        "most": 100,
        "labels": ["score", "active from", "cold from"],
        "colours": ["--line-1", "--line-4", "--line-2"],
        "data": [
            [moment // 1000 for moment in moments],
            [round(score_of(memory, moment, lifecycle), 1) for moment in moments],
            [lifecycle.active] * len(moments),
            [lifecycle.cold] * len(moments),
        ],
    }
