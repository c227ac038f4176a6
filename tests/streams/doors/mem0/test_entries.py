"""What becomes a memory while a user's entries are read is among them, once."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any, cast

from schemas.errors import MemoryNotFound
from schemas.memories import Memory
from streams.doors.mem0.entries import Entries
from streams.runtime.clock import WallClock
from streams.service import MemoryService
from tests.support.making import memory_of

MADE = memory_of(80)


class Promoted:
    """Asked for the first time, it has an exchange that is no memory yet; afterwards it is one."""

    def __init__(self) -> None:
        self._asked, self.users = False, self

    def _is_memory(self) -> bool:
        before, self._asked = self._asked, True
        return before

    @property
    def clock(self) -> WallClock:
        return WallClock()

    def memories_of(self, user_id: str) -> list[Memory]:
        return [MADE] if self._is_memory() else []

    async def ask(self, user_id: str, method: Callable[..., Any], *args: Any) -> Any:
        """As a shard of one's own."""
        return method(self, *args)

    async def said_by(self, user_id: str) -> list[Memory]:
        return [] if self._is_memory() else [MADE]

    async def one(self, user_id: str, memory_id: uuid.UUID) -> Memory:
        if not self._is_memory():
            raise MemoryNotFound("not yet")
        return MADE


def entries() -> Entries:
    return Entries(cast(MemoryService, Promoted()))


async def test_it_is_listed_once() -> None:
    assert await entries().of_user("u") == [(MADE, True)]


async def test_it_is_found_by_its_id() -> None:
    assert await entries().one("u", MADE.id) == (MADE, True)
