"""A user's memories as the API sees them. What is another user's is not there."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

from fastapi import HTTPException
from pydantic import BaseModel

from schemas.events import LongTermEvent
from schemas.memories import Memory, State, shown_score
from schemas.messages import iso
from schemas.settings import LifecycleSettings
from streams.clock import now_ms
from streams.rules.lifecycle import score_of, state_of
from tables.shard import Shard

if TYPE_CHECKING:
    from streams.app import Siltstone

E = TypeVar("E", bound=LongTermEvent)
P = ParamSpec("P")
T = TypeVar("T")

#: A request waits this long for a shard that is being opened, or a broker that does not answer.
WAIT_SECONDS = 10.0

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
    summary_of: list[uuid.UUID]
    summarized_by: uuid.UUID | None
    superseded_by: uuid.UUID | None

    @classmethod
    def of(cls, memory: Memory, now: int, lifecycle: LifecycleSettings, **more: Any) -> Self:
        score = score_of(memory, now, lifecycle)
        return cls(
            id=memory.id,
            memory=memory.text,
            kind=memory.kind,
            importance=memory.importance,
            score=shown_score(score),
            state=state_of(score, lifecycle),
            created_at=iso(memory.created_at),
            last_accessed=iso(memory.last_accessed),
            access_count=memory.access_count,
            pinned=memory.pinned,
            session_id=memory.session_id,
            agent_id=memory.agent_id,
            message_ids=list(memory.message_ids),
            metadata=memory.meta,
            summary_of=list(memory.summary_of),
            summarized_by=memory.summarized_by,
            superseded_by=memory.superseded_by,
            **more,
        )


def unknown(user_id: str, memory_id: uuid.UUID) -> HTTPException:
    return HTTPException(404, f"user {user_id} has no memory {memory_id}")


class OwnedMemories:
    """Reads memories of this worker's users. `partition_here` raises `ShardNotHere` for everybody else's."""

    def __init__(self, worker: Siltstone, partition_here: Callable[[str], int]) -> None:
        self.worker, self.partition_here = worker, partition_here

    async def whole(self, user_id: str) -> int:
        """The user's partition, when its shard is open and holds all that it should."""
        partition = self.partition_here(user_id)
        await self.worker.long_term.whole(partition)
        return partition

    async def ask(
        self, user_id: str, method: Callable[Concatenate[Shard, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """`method(shard, …)` of the user's shard, when it is `whole`. Raises `TimeoutError` where that takes long."""
        async with asyncio.timeout(WAIT_SECONDS):
            return await self.worker.shards.call(await self.whole(user_id), method, *args, **kwargs)

    async def of_user(self, user_id: str) -> tuple[Memory, ...]:
        """All of the user's, oldest first."""
        return await self.ask(user_id, Shard.memories_of, user_id)

    async def one(self, user_id: str, memory_id: uuid.UUID) -> Memory:
        """The user's memory of this id, or the one that a near-copy of this id went into; else 404."""
        found = await self.ask(user_id, Shard.memory_of, user_id, memory_id)
        if found is None:
            raise unknown(user_id, memory_id)
        return found

    def shown(self, memory: Memory) -> ShownMemory:
        return ShownMemory.of(memory, self.worker.clock.now(), self.worker.settings.lifecycle)


def command(kind: type[E], user_id: str, /, **fields: Any) -> E:
    """An event of now."""
    return kind.model_validate({"event_id": uuid.uuid4(), "user_id": user_id, "timestamp": now_ms(), **fields})  # type: ignore[return-value]
