"""Upper bounds of the number of memories that users have, so that most promotions need no count."""

from __future__ import annotations

from collections import Counter
from typing import Final

from tables.memories.catalog.changes import Changes
from tables.memories.catalog.users import Users

#: After new memories of this number of users, the catalog is asked again.
_USERS: Final = 65_536


class Bounds:
    """Only users with more than half of `limit` memories are counted, which are few. A limit of 0 is none."""

    def __init__(self, users: Users, limit: int) -> None:
        self._users, self._limit, self._half = users, limit, limit // 2
        self._read()

    def _read(self) -> None:
        self._many = self._users.with_more_than(self._half) if self._limit else {}
        self._added = Counter[str]()

    def at_most(self, user_id: str) -> int:
        """Return a number that the user's memories do not exceed."""
        return self._many.get(user_id, self._half) + self._added[user_id]

    def follow(self, changes: Changes) -> None:
        """Count the new memories of a batch. Call it after the commit."""
        for memory in changes.new.values():
            self._added[memory.user_id] += 1
        if len(self._added) > _USERS:
            self._read()
