"""Find the user of a memory id: mem0's client requests a memory by its id alone, but here ids belong to users.

If the caller's token is of one user, that is the user. Otherwise this worker's shards are searched, then the other
workers. An exchange that is not a memory yet is in no shard. Therefore the worker also remembers the users of the ids
that its answers showed last.
"""

from __future__ import annotations

import uuid
from collections import OrderedDict
from collections.abc import Iterable
from typing import Any, Final

from fastapi import HTTPException

from schemas.errors import MemoryElsewhere
from streams.doors.mem0.wire import Caller
from streams.service import MemoryService
from tables.memories.shard import Shard

#: The maximum number of ids whose users are remembered. They take a few megabytes.
MOST_SHOWN: Final = 20_000


class Owners:
    """Finds the user of an id, on one worker."""

    def __init__(self, service: MemoryService, most: int = MOST_SHOWN) -> None:
        self._service, self._most = service, most
        self._shown = OrderedDict[uuid.UUID, str]()

    def showed(self, user_id: str, entries: Iterable[dict[str, Any]]) -> None:
        """Remember that these entries were shown, and belong to the user."""
        for one in entries:
            identity = uuid.UUID(one["id"])
            self._shown[identity] = user_id
            self._shown.move_to_end(identity)
        while len(self._shown) > self._most:
            self._shown.popitem(last=False)

    async def user_of(self, caller: Caller, memory_id: uuid.UUID) -> str:
        """The user of an id.

        Raises `MemoryElsewhere` if no user of this worker whom the caller may access has the id, and an
        `HTTPException` (409) if several have it.
        """
        if caller.users is not None and len(caller.users) == 1:
            return caller.user(None)
        async with self._service.users.own_shards():
            found = set().union(*await self._service.shards.call_each(Shard.users_with, memory_id))
        if memory_id in self._shown:
            found.add(self._shown[memory_id])
        if caller.users is not None:
            found &= caller.users
        if not found:
            raise MemoryElsewhere("there is no such memory")
        if len(found) > 1:
            raise HTTPException(409, f"{len(found)} users have a memory with this id: use a token of one user")
        return caller.user(found.pop())
