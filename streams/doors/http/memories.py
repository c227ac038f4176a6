"""Routes of long-term memories: read, list with filters, edit, pin and forget them, and show their history.

Each change is written to the log as an event.
"""

from __future__ import annotations

import uuid
from functools import partial
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query
from pydantic import BaseModel, Field, model_validator

from schemas.events import Edit, Forget, ForgetUser, Pin, Unpin, ValidFrom, ValidTo, check_validity
from schemas.fields import MAX_METADATA_BYTES, Content, Metadata
from schemas.ids import Id
from schemas.memories import Memory
from schemas.sources import Source
from schemas.times import iso
from streams.doors.http.accepted import Accepted
from streams.doors.http.asker import Asker, sources_by
from streams.doors.http.consistency import Consistency, Wait
from streams.doors.http.forget_source import ForgottenSource, forget_source
from streams.doors.http.listing import After, Filters, Listed, PageQuery, PageSize, conditions_of, page_of_memories
from streams.doors.http.partial import MayBePartial, Partial, said
from streams.doors.http.reference import GivenAsOf, GivenZone, as_of_of, reference_of
from streams.doors.http.shown import ShownMemory, command, shown
from streams.recall.filtering import Condition, HeldAt
from streams.service import MemoryService
from tables.memories.editing import outgrows


class MemoriesResponse(MayBePartial):
    memories: list[ShownMemory]
    total: int = Field(description="number of all memories that match the filters")
    next: uuid.UUID | None = Field(description="pass it as `after` to get the next page; null on the last one")


class OneMemory(ShownMemory, MayBePartial):
    """A memory. With `partial=allow`, also whether some of its changes may not be recovered yet."""


class MemoryChange(BaseModel):
    """New values of a memory. Omitted fields stay as they are.

    With the metadata `"still_holds": true`, the memory is not updated or superseded by another one, and holds again.
    """

    user_id: Id
    text: Annotated[Content, Field(min_length=1)] | None = None
    metadata: Metadata | None = Field(
        default=None, description="merged into the existing metadata; a null removes its key"
    )

    valid_from: ValidFrom = None
    valid_to: ValidTo = None

    @model_validator(mode="after")
    def _changes_something(self) -> MemoryChange:
        if (self.text, self.metadata, self.valid_from, self.valid_to) == (None, None, None, None):
            raise ValueError("give text, metadata, valid_from or valid_to")
        check_validity(self.valid_from, self.valid_to)
        return self


class PastEvent(BaseModel):
    at: str
    event: str = Field(
        description="created, edited, merged, pinned, unpinned, superseded, supersedes, summarized, transition"
    )
    details: dict[str, Any]


class HistoryResponse(BaseModel):
    id: uuid.UUID
    user_id: str
    events: list[PastEvent] = Field(description="oldest first")


async def history_of(service: MemoryService, found: Memory) -> HistoryResponse:
    """Return the history of a memory, oldest event first. The memory may be in the archive."""
    made = PastEvent(at=iso(found.created_at), event="created", details={"kind": found.kind})
    done = await service.users.ask(found.user_id, lambda shard: shard.history.of(found.user_id, found.id))
    past = [PastEvent(at=iso(one.occurred_at), event=one.event, details=one.details) for one in done]
    return HistoryResponse(id=found.id, user_id=found.user_id, events=[made, *past])


def memory_routes(service: MemoryService) -> APIRouter:
    """Return the routes of `/v1/memories`, for the memories of this worker's shards."""
    api = APIRouter(tags=["memories"])
    write, reads = partial(Accepted.written, service), Consistency(service).reads

    @api.get("/v1/memories", dependencies=reads)
    async def memories(
        user_id: Id,
        among: Listed,
        allowed: Partial,
        filters: Filters = [],  # noqa: B006
        limit: PageSize = 50,
        after: After = None,
        as_of: GivenAsOf = None,
        timezone: GivenZone = None,
    ) -> MemoriesResponse:
        """The user's memories, oldest first: the active ones, unless `state`, `include_all` or `include_cold` is set.

        Memories that another one replaces are listed with `include_all`, or with `as_of` if they held then. With
        `as_of`, the list has the memories that held at that time.

        A list does not count as an access. With `partial=allow`, the response does not wait for the recovery of the
        user's partition: it lists the memories that are already recovered.
        """
        moment = None if as_of is None else as_of_of(as_of, reference_of(service, None, timezone).zone)
        conditions: list[Condition] = [*conditions_of(filters)]
        if moment is not None:
            conditions.append(HeldAt(moment))
        wanted = PageQuery(user_id, conditions, limit, after, among.states, service.clock.now(), among.replaced)
        page, behind = await service.users.ask_partly(
            allowed, user_id, page_of_memories, wanted, service.settings.lifecycle
        )
        memories = [shown(memory, service) for memory in page.memories]
        return MemoriesResponse(memories=memories, total=page.total, next=page.next_after, **said(allowed, behind))

    @api.get("/v1/memories/{memory_id}", dependencies=reads)
    async def memory(memory_id: uuid.UUID, user_id: Id, allowed: Partial, touch: bool = True) -> OneMemory:
        """One memory, in its state before this request. The request counts as an access, unless `touch` is false.

        For the id of a near-copy, the response is the memory that it was merged into. With `partial=allow`, the
        response does not wait for the recovery of the user's partition: it is the memory if that is already
        recovered, or else 503.
        """
        found, behind = await service.one_partly(allowed, user_id, memory_id)
        if touch:
            service.recall.accessed(user_id, [found.id])
        return OneMemory.of(found, service.clock.now(), service.settings.lifecycle, **said(allowed, behind))

    @api.patch("/v1/memories/{memory_id}", status_code=202)
    async def edit(memory_id: uuid.UUID, change: MemoryChange, wait: Wait, asker: Asker) -> Accepted:
        """Edit text, metadata or validity of a memory. A new text is embedded. The history keeps the old values."""
        found = await service.one(change.user_id, memory_id)
        begins = found.valid_from if change.valid_from is None else change.valid_from
        ends = found.valid_to if change.valid_to is None else change.valid_to
        if begins is not None and ends is not None and ends < begins:
            raise HTTPException(422, f"valid_to: the memory would hold from {iso(begins)} until {iso(ends)}")
        if change.metadata is not None and outgrows(found.meta, change.metadata):
            raise HTTPException(
                422, f"metadata: merged into the memory's own, it has more than {MAX_METADATA_BYTES} bytes of JSON"
            )
        fields = change.model_dump(exclude={"user_id"}, exclude_none=True)
        sources = [] if change.text is None else sources_by(asker)
        return await write(command(Edit, change.user_id, memory_id=found.id, sources=sources, **fields), wait)

    @api.get("/v1/memories/{memory_id}/history", dependencies=reads)
    async def history(memory_id: uuid.UUID, user_id: Id) -> HistoryResponse:
        """The history of a memory since its creation, including its changes of state. The memory may be archived."""
        archived = await service.users.ask(user_id, lambda shard: shard.archive.find(user_id, memory_id))
        return await history_of(service, archived or await service.one(user_id, memory_id))

    @api.delete("/v1/memories/{memory_id}", status_code=202)
    async def forget(
        memory_id: uuid.UUID,
        user_id: Id,
        wait: Wait,
        event_id: Annotated[
            uuid.UUID | None, Query(description="a repeated request with this id has no effect")
        ] = None,
    ) -> Accepted:
        """Forget a memory, even a pinned one. A replay of the log does not bring it back.

        Any id is accepted, even if the user has no such memory: a memory that was sent a moment ago may be only in
        the log, and must be forgotten as well.
        """
        event = command(Forget, user_id, memory_id=memory_id)
        return await write(event.model_copy(update={"event_id": event_id}) if event_id else event, wait)

    @api.delete("/v1/memories", status_code=202)
    async def forget_all(user_id: Id, wait: Wait, source: Source | None = None) -> Accepted | ForgottenSource:
        """Forget all data of the user up to now: memories, archived memories, daily summaries and short-term windows.

        With `source`, forget only the memories, archived memories, exchanges of windows and short-term memories to
        which this source contributed. Daily summaries stay.
        """
        if source is None:
            return await write(command(ForgetUser, user_id), wait)
        return await forget_source(service, user_id, source, wait)

    @api.put("/v1/memories/{memory_id}/pin", status_code=202)
    async def pin(memory_id: uuid.UUID, user_id: Id, wait: Wait) -> Accepted:
        """Pin a memory of the user: it does not decay."""
        found = await service.one(user_id, memory_id)
        return await write(command(Pin, user_id, memory_id=found.id), wait)

    @api.delete("/v1/memories/{memory_id}/pin", status_code=202)
    async def unpin(memory_id: uuid.UUID, user_id: Id, wait: Wait) -> Accepted:
        """Unpin a memory: it decays again."""
        found = await service.one(user_id, memory_id)
        return await write(command(Unpin, user_id, memory_id=found.id), wait)

    return api
