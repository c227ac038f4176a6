"""Long-term memories one by one: read, listed with filters, forgotten, pinned, linked.

Writes are events in the log, like everybody's. Every path names the user, and what is another user's is not there.
"""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any, Self

from fastapi import APIRouter, HTTPException, Query
from pydantic import BaseModel, Field

from schemas.events import Forget, ForgetUser, Link, LongTermEvent, Pin, Unlink, Unpin
from schemas.memories import Memory, State
from schemas.messages import Id, iso
from schemas.settings import LifecycleSettings
from streams.clock import now_ms
from streams.rules.filtering import Filter, matching
from streams.rules.lifecycle import score_of, state_of
from tables.shard import Shard

if TYPE_CHECKING:
    from streams.app import Siltstone

#: Writes an event of the user's; the answer says where it lies.
Write = Callable[[LongTermEvent], Awaitable[BaseModel]]


class ShownMemory(BaseModel):
    """A memory as it stands now."""

    id: uuid.UUID
    memory: str
    kind: str
    importance: float
    score: float
    state: State
    created_at: str
    last_accessed: str
    access_count: int
    pinned: bool
    session_id: str | None
    agent_id: str | None
    message_ids: list[str]
    metadata: dict[str, Any]

    @classmethod
    def of(cls, memory: Memory, now: int, lifecycle: LifecycleSettings) -> Self:
        score = score_of(memory, now, lifecycle)
        return cls(
            id=memory.id,
            memory=memory.text,
            kind=memory.kind,
            importance=memory.importance,
            score=round(score, 2),
            state=state_of(score, lifecycle),
            created_at=iso(memory.created_at),
            last_accessed=iso(memory.last_accessed),
            access_count=memory.access_count,
            pinned=memory.pinned,
            session_id=memory.session_id,
            agent_id=memory.agent_id,
            message_ids=list(memory.message_ids),
            metadata=memory.meta,
        )


class MemoriesResponse(BaseModel):
    memories: list[ShownMemory]
    total: int = Field(description="how many there are in all, with these filters")
    next: uuid.UUID | None = Field(description="give it as `after` to read on; null at the end")


class NewLink(BaseModel):
    """Two memories of the user's belong together."""

    user_id: Id
    source_id: uuid.UUID
    target_id: uuid.UUID
    kind: Id = "related"
    weight: Annotated[float, Field(ge=0, le=1)] = 1.0


def memory_routes(worker: Siltstone, partition_here: Callable[[str], int], write: Write) -> APIRouter:
    """`/v1/memories…` and `/v1/links`, for the memories of this worker's shards."""
    api = APIRouter(tags=["memories"])

    async def of_user(user_id: str) -> tuple[Memory, ...]:
        return await worker.shards.call(partition_here(user_id), Shard.memories_of, user_id)

    async def one(user_id: str, memory_id: uuid.UUID) -> Memory:
        for memory in await of_user(user_id):
            if memory.id == memory_id:
                return memory
        raise HTTPException(404, f"user {user_id} has no memory {memory_id}")

    def shown(memory: Memory) -> ShownMemory:
        return ShownMemory.of(memory, worker.clock.now(), worker.settings.lifecycle)

    def common(user_id: str) -> dict[str, Any]:
        return {"event_id": uuid.uuid4(), "user_id": user_id, "timestamp": now_ms()}

    @api.get("/v1/memories")
    async def memories(
        user_id: Id,
        filters: Annotated[list[str], Query(alias="filter", description="field:operator:value; all must match")] = [],  # noqa: B006
        limit: Annotated[int, Query(ge=1, le=1000)] = 50,
        after: Annotated[uuid.UUID | None, Query(description="read on after this memory")] = None,
    ) -> MemoriesResponse:
        """The user's memories, in every state, oldest first."""
        try:
            conditions = [Filter.parse(text) for text in filters]
        except ValueError as exc:
            raise HTTPException(422, str(exc)) from exc
        found = matching(await of_user(user_id), conditions)
        start = 0
        if after is not None:
            start = next((place + 1 for place, memory in enumerate(found) if memory.id == after), len(found))
        page = found[start : start + limit]
        more = start + limit < len(found)
        return MemoriesResponse(
            memories=[shown(memory) for memory in page], total=len(found), next=page[-1].id if more else None
        )

    @api.get("/v1/memories/{memory_id}")
    async def memory(memory_id: uuid.UUID, user_id: Id) -> ShownMemory:
        """One memory; reading it counts as no access."""
        return shown(await one(user_id, memory_id))

    @api.delete("/v1/memories/{memory_id}", status_code=202)
    async def forget(memory_id: uuid.UUID, user_id: Id) -> Any:
        """Forget a memory: the user's right, whatever pins it. A replay leaves it forgotten."""
        return await write(Forget(**common(user_id), memory_id=memory_id))

    @api.delete("/v1/memories", status_code=202)
    async def forget_all(user_id: Id) -> Any:
        """Forget everything of the user's up to now."""
        return await write(ForgetUser(**common(user_id)))

    @api.put("/v1/memories/{memory_id}/pin", status_code=202)
    async def pin(memory_id: uuid.UUID, user_id: Id) -> Any:
        """Pin a memory of the user's: it does not decay."""
        await one(user_id, memory_id)
        return await write(Pin(**common(user_id), memory_id=memory_id))

    @api.delete("/v1/memories/{memory_id}/pin", status_code=202)
    async def unpin(memory_id: uuid.UUID, user_id: Id) -> Any:
        """Let it decay again."""
        await one(user_id, memory_id)
        return await write(Unpin(**common(user_id), memory_id=memory_id))

    @api.post("/v1/links", status_code=202)
    async def link(new: NewLink) -> Any:
        """Link two memories of the user's."""
        for memory_id in (new.source_id, new.target_id):
            await one(new.user_id, memory_id)
        return await write(Link(**common(new.user_id), **new.model_dump(exclude={"user_id"})))

    @api.delete("/v1/links", status_code=202)
    async def unlink(user_id: Id, source_id: uuid.UUID, target_id: uuid.UUID, kind: Id = "related") -> Any:
        """Remove a link."""
        return await write(Unlink(**common(user_id), source_id=source_id, target_id=target_id, kind=kind))

    return api
