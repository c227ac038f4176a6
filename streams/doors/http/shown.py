"""Memories as the API returns them, and the creation of new events."""

from __future__ import annotations

import uuid
from typing import Any, Self, TypeVar

from pydantic import BaseModel, computed_field

from schemas.events import LongTermEvent
from schemas.lifecycle import score_of, state_of
from schemas.memories import Memory, State, api_fields, shown_score
from schemas.settings import LifecycleSettings
from schemas.sources import sources_in
from schemas.times import now_ms
from streams.service import MemoryService

E = TypeVar("E", bound=LongTermEvent)


class ShownMemory(BaseModel):
    """A memory with its current score and state."""

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

    @computed_field  # type: ignore[prop-decorator]  # as pydantic says: mypy knows no decorated properties
    @property
    def source(self) -> list[str]:
        """The sources of the memory's text: user, assistant, tool, or token:… (see schemas/sources.py)."""
        return sources_in(self.metadata, self.kind)

    @classmethod
    def of(cls, memory: Memory, now: int, lifecycle: LifecycleSettings, **more: Any) -> Self:
        score = score_of(memory, now, lifecycle)
        return cls(
            **api_fields(memory, ShownMemory), score=shown_score(score), state=state_of(score, lifecycle), **more
        )


def shown(memory: Memory, service: MemoryService) -> ShownMemory:
    return ShownMemory.of(memory, service.clock.now(), service.settings.lifecycle)


def command(kind: type[E], user_id: str, /, **fields: Any) -> E:
    """Return a new event of this kind.

    Its id is random and its timestamp is the current time, unless `fields` has other values.
    """
    return kind.model_validate({"event_id": uuid.uuid4(), "user_id": user_id, "timestamp": now_ms(), **fields})  # type: ignore[return-value]
