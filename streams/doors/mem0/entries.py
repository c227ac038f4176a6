"""Memories in the JSON form of mem0's API, and lists of memories.

The lists also contain exchanges that are not memories yet.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from fastapi import HTTPException

from schemas.errors import MemoryNotFound
from schemas.memories import SHORT_TERM, Memory, SearchHit
from schemas.times import iso
from streams.doors.mem0.filters import APP
from streams.recall.filtering import Condition
from streams.runtime.cancellation import cancellable
from streams.service import MemoryService
from tables.memories.editing import OURS
from tables.memories.items import is_expired
from tables.memories.shard import Shard

Entry = dict[str, Any]
#: The value of the field `state` for a memory. For an exchange that is not a memory yet, the value is `short_term`.
STORED: Final = "memory"


#: The time of the last edit (epoch ms), by memory id. Memories that were never edited are missing.
Edits = Mapping[uuid.UUID, int]


def of_memory(memory: Memory, edits: Edits, *, kept: bool) -> Entry:
    """Return a memory in mem0's form. If `kept` is false, `memory` is an exchange that is not a memory yet."""
    made = _entry(memory, memory.user_id, memory.text, iso(memory.created_at), memory.meta, edits)
    return {**made, "state": STORED if kept else SHORT_TERM}


def of_hit(hit: SearchHit, user_id: str, edits: Edits) -> Entry:
    made = _entry(hit, user_id, hit.memory, hit.created_at, hit.metadata, edits)
    return {**made, "score": hit.relevance, "state": SHORT_TERM if hit.state == SHORT_TERM else STORED}


def _entry(
    one: Memory | SearchHit, user_id: str, text: str, created_at: str, meta: Mapping[str, Any], edits: Edits
) -> Entry:
    categories = meta.get("categories")
    hidden = {*OURS, APP, "categories"}
    return {
        "id": str(one.id),
        "memory": text,
        "user_id": user_id,
        "agent_id": one.agent_id,
        "app_id": meta.get(APP),
        "run_id": one.session_id,
        "metadata": {key: value for key, value in meta.items() if key not in hidden},
        "categories": categories if isinstance(categories, list) else [],
        "created_at": created_at,
        "updated_at": iso(edits[one.id]) if one.id in edits else created_at,
        "expiration_date": None,
    }


class Entries:
    """Finds the memories and exchanges of a user that mem0's methods `get_all` and `get` return."""

    def __init__(self, service: MemoryService) -> None:
        self._service = service

    async def edits(self, user_id: str) -> dict[uuid.UUID, int]:
        return await self._service.users.ask(user_id, lambda shard: shard.history.last_edits(user_id))

    async def of_user(
        self, user_id: str, conditions: Sequence[Condition] = (), *, replaced: bool = False
    ) -> list[tuple[Memory, bool]]:
        """Return the user's memories and exchanges that match all conditions, newest first.

        Each is paired with a flag, which is true for a memory, and false for an exchange that is not a memory yet. If
        `replaced` is true, the list includes memories that a newer memory or a summary replaces.
        """
        # Exchanges are read before memories. So an exchange that is promoted between the two reads is found as a
        # memory.
        before = await self._service.said_by(user_id)
        now = self._service.clock.now()
        return await self._service.users.ask(user_id, _chosen, user_id, before, conditions, replaced, now)

    async def one(self, user_id: str, memory_id: uuid.UUID) -> tuple[Memory, bool]:
        """Return the memory or exchange with this id, and a flag that is true for a memory and false for an exchange.

        Raises `MemoryNotFound` if the user has neither.
        """
        try:
            return await self._service.one(user_id, memory_id), True
        except MemoryNotFound:
            for memory in await self._service.said_by(user_id):
                if memory.id == memory_id:
                    return memory, False
        return await self._service.one(user_id, memory_id), True  # an exchange may be promoted by now

    async def memory(self, user_id: str, memory_id: uuid.UUID) -> Memory:
        """Return the memory with this id.

        Raises `MemoryNotFound` if there is no such memory, and an `HTTPException` (409) if the id is that of an
        exchange.
        """
        found, kept = await self.one(user_id, memory_id)
        if not kept:
            raise HTTPException(
                409, "this exchange is not a memory yet, and cannot be changed: add the new text with infer=False"
            )
        return found

    async def shown(self, user_id: str, found: Iterable[tuple[Memory, bool]]) -> list[Entry]:
        edits = await self.edits(user_id)
        return [of_memory(one, edits, kept=kept) for one, kept in found]


def _chosen(
    shard: Shard,
    user_id: str,
    said: Sequence[Memory],
    conditions: Sequence[Condition],
    replaced: bool,
    now: int,
) -> list[tuple[Memory, bool]]:
    """Return the memories and exchanges for `Entries.of_user`.

    This runs on the shard's thread instead of the event loop, because a user may have thousands of memories, and all
    conditions are checked for each of them.
    """
    memories = shard.memories_of(user_id)
    found = [(one, True) for one in memories if (replaced or one.current) and not is_expired(one, now)]
    found += [(one, False) for one in _once(said, memories)]
    found = [one for one in cancellable(found) if all(condition.matches(one[0]) for condition in conditions)]
    return sorted(found, key=lambda one: (one[0].created_at, one[0].seq), reverse=True)


def _once(said: Iterable[Memory], memories: Iterable[Memory]) -> list[Memory]:
    """Return the exchanges that have not become memories since they were read.

    If an exchange was still open when it was read, its memory may have another id. So message ids are compared too.
    """
    kept = {(memory.session_id, one) for memory in memories for one in (memory.id, *memory.message_ids)}
    return [one for one in said if kept.isdisjoint((one.session_id, part) for part in (one.id, *one.message_ids))]
