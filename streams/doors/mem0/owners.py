"""Find the user to whom a memory id belongs. mem0's client sends only the id, but Siltstone also needs the user.

If the caller's token is of one user, the id belongs to that user. Otherwise this worker's shards are searched, then
the other workers. An exchange that is not a memory yet is in no shard. Therefore the worker also remembers the users
of the ids that its latest answers showed.
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

#: The maximum number of ids whose users are remembered. Together they take a few megabytes.
MOST_SHOWN: Final = 20_000


class Owners:
    """Finds the user to whom a memory id belongs, among the users of this worker."""

    def __init__(self, service: MemoryService, most: int = MOST_SHOWN) -> None:
        self._service, self._most = service, most
        self._shown = OrderedDict[uuid.UUID, str]()

    def showed(self, user_id: str, entries: Iterable[dict[str, Any]]) -> None:
        """Remember that the ids of these entries belong to the user."""
        for one in entries:
            identity = uuid.UUID(one["id"])
            self._shown[identity] = user_id
            self._shown.move_to_end(identity)
        while len(self._shown) > self._most:
            self._shown.popitem(last=False)

    async def user_of(self, caller: Caller, memory_id: uuid.UUID) -> str:
        """Return the user to whom a memory id belongs, if the caller may access that user.

        Raises `MemoryElsewhere` if no such user of this worker has the id, and an `HTTPException` (409) if several
        users have it.
        """
        if caller.users is not None and len(caller.users) == 1:
            return caller.user(None)
        async with self._service.users.own_shards():
            found = set().union(*await self._service.shards.call_each(lambda shard: shard.users.having(memory_id)))
        if memory_id in self._shown:
            found.add(self._shown[memory_id])
        if caller.users is not None:
            found &= caller.users
        if not found:
            raise MemoryElsewhere("there is no such memory")
        if len(found) > 1:
            raise HTTPException(409, f"{len(found)} users have a memory with this id: use a token of one user")
        return caller.user(found.pop())
