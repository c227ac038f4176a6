"""The memories of the users who were asked about last, kept up to date with what is written."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable

from schemas.memories import Memory
from tables.catalog import Changes

MOST = 1024


class RecentUsers:
    """Memories by user, oldest first, as `read` gives them; the least recently asked about leave first."""

    def __init__(self, read: Callable[[str], list[Memory]]) -> None:
        self._read = read
        self._users: OrderedDict[str, tuple[Memory, ...]] = OrderedDict()

    def memories_of(self, user_id: str) -> tuple[Memory, ...]:
        """The same object until one of them changes."""
        found = self._users.get(user_id)
        if found is None:
            found = self._users[user_id] = tuple(self._read(user_id))
            if len(self._users) > MOST:
                self._users.popitem(last=False)
        self._users.move_to_end(user_id)
        return found

    def follow(self, changes: Changes, user_ids: Iterable[str]) -> None:
        """Take over what was written of these users: all others are as they were."""
        leaving = set(changes.leaving)
        for user_id in user_ids:
            known = self._users.get(user_id)
            if known is None:
                continue
            kept = [changes.updated.get(memory.id, memory) for memory in known if memory.seq not in leaving]
            new = [m for m in changes.new.values() if m.user_id == user_id and m.seq not in leaving]
            merged = sorted([*kept, *new], key=lambda memory: (memory.created_at, memory.seq)) if new else kept
            if len(merged) != len(known) or any(one is not other for one, other in zip(merged, known, strict=True)):
                self._users[user_id] = tuple(merged)

    def forget(self, user_ids: Iterable[str]) -> None:
        """They are read again when they are asked about."""
        for user_id in user_ids:
            self._users.pop(user_id, None)
