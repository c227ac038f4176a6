"""Memories as the API returns them, and the creation of new events."""

from __future__ import annotations

import uuid
from typing import Any, Self, TypeVar

from schemas.events import LongTermEvent
from schemas.lifecycle import score_of, state_of
from schemas.memories import Memory, MemoryFields, api_fields, shown_score
from schemas.settings import LifecycleSettings
from schemas.times import now_ms
from streams.service import MemoryService

E = TypeVar("E", bound=LongTermEvent)


class ShownMemory(MemoryFields):
    """A memory with its current score and state."""

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
