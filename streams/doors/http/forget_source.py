"""Forget all memories, exchanges and notes to which one source contributed.

A forget event is written for each memory, exchange and note. So a replay of the log forgets the same data.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from pydantic import Field

from schemas.errors import MemoryNotFound
from schemas.events import Forget
from schemas.places import Place, newest
from streams.doors.http.accepted import Written
from streams.doors.http.shown import command
from streams.service import MemoryService


class ForgottenSource(Written):
    """The numbers of memories, exchanges and short-term memories that a request forgets.

    A memory of several sources is forgotten if the given source is one of them.
    """

    user_id: str
    source: str
    memories: int = Field(description="forgotten memories, including archived ones")
    exchanges: int = Field(description="forgotten exchanges of windows that were not memories; none becomes one")
    short_term_memories: int


async def forget_source(service: MemoryService, user_id: str, source: str, wait: float | None) -> ForgottenSource:
    """Write a forget event for each memory, exchange and note of the source.

    Wait at most `wait` seconds until the events have taken effect. Raises `MemoryNotFound` if the user has no data
    from this source.
    """
    found = await service.of_source(user_id, source)
    ids: list[uuid.UUID] = [*dict.fromkeys((*found.memories, *found.exchanges, *found.notes))]
    if not ids:
        raise MemoryNotFound(f"user {user_id} has no data from source {source}")

    async def write() -> Sequence[Place]:
        return await service.writes.write_all([command(Forget, user_id, memory_id=one) for one in ids])

    places, applied = await service.writes.applied(user_id, wait, write)
    return ForgottenSource(
        token=newest(places)[0].token,
        applied=applied,
        user_id=user_id,
        source=source,
        memories=len(found.memories),
        exchanges=len(found.exchanges),
        short_term_memories=len(found.notes),
    )
