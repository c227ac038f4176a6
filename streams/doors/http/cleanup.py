"""Routes that preview or start a cleanup, which archives memories and later removes them from the archive."""

from __future__ import annotations

import asyncio
import uuid
from typing import Annotated, Literal, Self

from fastapi import APIRouter, HTTPException, Query
from pydantic import BaseModel, ConfigDict, Field

from schemas.ids import Id
from schemas.memories import shown_score
from schemas.times import iso
from streams.doors.http.refusals import because
from streams.service import MemoryService
from streams.shards.user_shards import WAIT_SECONDS
from tables.memories.catalog.cleanup import Candidate, Cause, Exemption, Verdicts


class ShownCandidate(BaseModel):
    memory_id: uuid.UUID
    user_id: str
    memory: str
    cause: Cause = Field(description="the condition that lasted too long")
    since: str
    score: float
    last_accessed: str
    verdict: Literal["archive", "remove", "stay"]
    exemption: Exemption | None = Field(description="why the memory stays; null if it goes")

    @classmethod
    def of(cls, found: Candidate) -> Self:
        going: Literal["archive", "remove"] = "remove" if found.cause == "archived" else "archive"
        return cls(
            memory_id=found.memory_id,
            user_id=found.user_id,
            memory=found.text,
            cause=found.cause,
            since=iso(found.since),
            score=shown_score(found.score),
            last_accessed=iso(found.last_accessed),
            verdict="stay" if found.exemption else going,
            exemption=found.exemption,
        )


class CleanupResponse(BaseModel):
    at: str
    enabled: bool = Field(description="whether cleanup runs on the lifecycle's timer")
    paused: bool
    archive: int = Field(description="number of memories to archive")
    remove: int = Field(description="number of memories to remove from the archive")
    exempt: dict[Exemption, int] = Field(description="number of candidates that stay, by reason")
    asked: int = Field(description="number of memories that this request archives or removes; 0 for a preview")
    candidates: list[ShownCandidate] = Field(
        description="candidates, those without an exemption first, then the longest waiting"
    )


class CleanupOrder(BaseModel):
    model_config = ConfigDict(extra="forbid")

    user_id: Id | None = None
    limit: Annotated[int, Field(ge=0, le=1000, description="maximum number of candidates to list")] = 50


def cleanup_routes(service: MemoryService) -> APIRouter:
    """Return the routes of `/v1/archive/cleanup`. They work on one user, or on all shards of this worker."""
    api = APIRouter(tags=["archive"])
    settings = service.settings.lifecycle.cleanup

    def shown(now: int, verdicts: Verdicts, limit: int, asked: int) -> CleanupResponse:
        going = verdicts.going_by_cause
        removing = going.pop("archived", 0)
        return CleanupResponse(
            at=iso(now),
            enabled=settings.enabled,
            paused=settings.paused,
            archive=going.total(),
            remove=removing,
            exempt=verdicts.exempt,
            asked=asked,
            candidates=[ShownCandidate.of(candidate) for candidate in verdicts.candidates[:limit]],
        )

    @api.get("/v1/archive/cleanup")
    async def look(
        user_id: Id | None = None,
        limit: Annotated[int, Query(ge=0, le=1000, description="maximum number of candidates to list")] = 50,
    ) -> CleanupResponse:
        """Preview a cleanup: the memories that it would archive or remove now, and the reasons. This changes nothing.

        The preview is also available if the periodic cleanup is disabled.
        """
        if user_id is not None:
            service.users.partition_here(user_id)
        async with asyncio.timeout(WAIT_SECONDS):
            now = await service.moment()
            return shown(now, await service.cleanup.verdicts(now, user_id, limit), limit, asked=0)

    @api.post("/v1/archive/cleanup", status_code=202, responses=because(409, "Cleanup is paused"))
    async def clean(order: CleanupOrder) -> CleanupResponse:
        """Clean up now, even if the periodic cleanup is disabled. Respond 409 if cleanup is paused."""
        if settings.paused:
            raise HTTPException(409, "cleanup is paused: set lifecycle.cleanup.paused to false")
        if order.user_id is not None:
            service.users.partition_here(order.user_id)
        async with asyncio.timeout(WAIT_SECONDS):
            now = await service.moment()
            verdicts = await service.cleanup.clean(now, order.user_id)
            return shown(now, verdicts, order.limit, asked=len(verdicts.going))

    return api
