"""What a write is answered with."""

from __future__ import annotations

from typing import Self

from pydantic import BaseModel

from schemas.events import LongTermEvent
from streams.service import MemoryService, Place


class Accepted(BaseModel):
    """A write is in the log; it takes effect within moments."""

    event_id: str
    topic: str
    partition: int
    offset: int

    @classmethod
    def at(cls, place: Place, event_id: str) -> Self:
        return cls(event_id=event_id, **place._asdict())

    @classmethod
    async def written(cls, service: MemoryService, event: LongTermEvent) -> Self:
        return cls.at(await service.write(event), str(event.event_id))
