"""Routes of the archive: list and search archived memories; archive, restore and remove memories.

Each change is written to the log as an event. Its timestamp comes from the lifecycle's clock.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Self

from fastapi import APIRouter
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, model_validator

from schemas.events import Archive, LongTermEvent, Remove, Restore
from schemas.ids import Id
from schemas.lifecycle import score_of, state_of
from schemas.memories import SearchHit, State
from schemas.places import Place, newest
from schemas.times import iso, now_ms
from streams.doors.http.accepted import Accepted, Written
from streams.doors.http.consistency import AtLeast, Consistency, Wait
from streams.doors.http.listing import After, Filters, PageQuery, PageSize, conditions_of, page_of_archive
from streams.doors.http.reference import Explain, GivenDate, GivenZone, reference_of
from streams.doors.http.shown import ShownMemory, command
from streams.recall.query import Query
from streams.service import MemoryService

#: The maximum number of events that are written concurrently.
AT_ONCE = 500


class ShownArchived(ShownMemory):
    """A memory in the archive; its score continues to fall."""

    archived_at: str
    reason: str = Field(description="`manual` or `cleanup`")


class ArchiveResponse(BaseModel):
    memories: list[ShownArchived]
    total: int = Field(description="number of all memories that match the filters")
    next: uuid.UUID | None = Field(description="pass it as `after` to get the next page; null on the last one")


class ArchiveRequest(BaseModel):
    """The memories to archive: `memory_id` for one memory, `memory_ids` for several."""

    model_config = ConfigDict(extra="forbid")

    user_id: Id
    memory_id: uuid.UUID | None = None
    memory_ids: Annotated[list[uuid.UUID], Field(min_length=1, max_length=1000)] | None = None

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if (self.memory_id is None) == (self.memory_ids is None):
            raise ValueError("give either memory_id or memory_ids")
        return self

    @property
    def ids(self) -> list[uuid.UUID]:
        return [self.memory_id] if self.memory_id is not None else self.memory_ids or []


class OfUser(BaseModel):
    model_config = ConfigDict(extra="forbid")

    user_id: Id


class ArchiveQuestion(OfUser):
    """A search of one user's archive. Names of fields may also be written in camelCase."""

    model_config = ConfigDict(populate_by_name=True, extra="forbid")

    user_id: Annotated[Id, Field(validation_alias=AliasChoices("user_id", "userId"))]
    query: Annotated[str, Field(min_length=1, max_length=32_768)]
    top_k: Annotated[int | None, Field(ge=1, le=1000, validation_alias=AliasChoices("top_k", "topK", "limit"))] = None
    explain: Explain = False
    reference_date: GivenDate = None
    timezone: GivenZone = None


class FoundArchived(BaseModel):
    results: list[SearchHit]


class Archiving(Written):
    """The events that archive the memories are in the log. They take effect within moments."""

    archiving: int
    event_ids: list[uuid.UUID]


def archive_routes(service: MemoryService) -> APIRouter:
    """Return the routes of `/v1/archive`, except the routes of cleanup."""
    api = APIRouter(tags=["archive"])
    write, consistency = partial(Accepted.written, service), Consistency(service)
    lifecycle = service.settings.lifecycle

    async def now() -> int:
        return await service.moment() or now_ms()

    async def write_all(user_id: str, events: Sequence[LongTermEvent], wait: float | None) -> Archiving:
        async def write() -> Sequence[Place]:
            places: list[Place] = []
            for start in range(0, len(events), AT_ONCE):
                places += await asyncio.gather(*map(service.writes.write, events[start : start + AT_ONCE]))
            return places

        places, applied = await service.writes.applied(user_id, wait, write)
        return Archiving(
            archiving=len(events),
            event_ids=[event.event_id for event in events],
            token=newest(places)[0].token if places else None,
            applied=applied,
        )

    @api.get("/v1/archive", dependencies=consistency.reads)
    async def archive(
        user_id: Id,
        filters: Filters = [],  # noqa: B006
        limit: PageSize = 50,
        after: After = None,
    ) -> ArchiveResponse:
        """The user's archived memories, oldest first."""
        page = await service.users.ask(
            user_id, page_of_archive, PageQuery(user_id, conditions_of(filters), limit, after)
        )
        at = await now()
        shown = [
            ShownArchived.of(one.memory, at, lifecycle, archived_at=iso(one.at), reason=one.reason)
            for one in page.memories
        ]
        return ArchiveResponse(memories=shown, total=page.total, next=page.next_after)

    @api.post("/v1/archive", status_code=202)
    async def add(chosen: ArchiveRequest, wait: Wait) -> Archiving:
        """Archive memories of the user, even pinned ones. Then only the search of the archive finds them.

        If one of the memories does not exist, none is archived.
        """
        found = {(await service.one(chosen.user_id, memory_id)).id for memory_id in chosen.ids}
        at = await now()
        return await write_all(
            chosen.user_id,
            [command(Archive, chosen.user_id, timestamp=at, memory_id=identity) for identity in sorted(found)],
            wait,
        )

    @api.post("/v1/archive/deprecated", status_code=202)
    async def add_deprecated(whose: OfUser, wait: Wait) -> Archiving:
        """Archive all deprecated memories of the user, except pinned ones.

        A memory that is accessed before its event takes effect is not archived.
        """
        at = await now()
        return await write_all(
            whose.user_id,
            [
                command(Archive, whose.user_id, timestamp=at, memory_id=memory.id, last_accessed=memory.last_accessed)
                for memory in await service.of_user(whose.user_id)
                if not memory.pinned and state_of(score_of(memory, at, lifecycle), lifecycle) is State.DEPRECATED
            ],
            wait,
        )

    @api.post("/v1/archive/search")
    async def search(question: ArchiveQuestion, at_least: AtLeast) -> FoundArchived:
        """The user's archived memories that answer the query, most relevant first. No access is counted."""
        await consistency.reached(question.user_id, at_least)
        query = Query(
            question.user_id,
            question.query,
            question.top_k or service.settings.long_term.top_k,
            frozenset(State),
            question.explain,
            replaced=True,
            reference=reference_of(service, question.reference_date, question.timezone),
        )
        return FoundArchived(results=await service.search_archive(query))

    @api.post("/v1/archive/{memory_id}/restore", status_code=202)
    async def restore(memory_id: uuid.UUID, whose: OfUser, wait: Wait) -> Accepted:
        """Restore a memory from the archive. The restoration counts as an access."""
        found = await service.archived(whose.user_id, memory_id)
        return await write(command(Restore, whose.user_id, timestamp=await now(), memory_id=found), wait)

    @api.delete("/v1/archive/{memory_id:uuid}", status_code=202)
    async def remove(memory_id: uuid.UUID, user_id: Id, wait: Wait) -> Accepted:
        """Remove a memory from the archive permanently. The audit trail records that it existed, without its text."""
        found = await service.archived(user_id, memory_id)
        return await write(command(Remove, user_id, timestamp=await now(), memory_id=found), wait)

    return api
