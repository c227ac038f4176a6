"""A cache of the memories of recently searched users. Each write of memories updates it."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import orjson

from schemas.memories import Memory
from tables.memories.catalog.changes import Changes
from tables.search.recent import Recent

#: The estimated bytes of a `Memory` object without its text, metadata and message ids.
_MEMORY_BYTES: Final = 700


class RecentUsers:
    """A cache of users' memories. `read` loads all memories of a user, oldest first, if they are not in the cache.

    The values are stored in `recent`, which limits their total size.
    """

    def __init__(self, read: Callable[[str], list[Memory]], recent: Recent) -> None:
        self._read, self._recent = read, recent

    def memories_of(self, user_id: str) -> tuple[Memory, ...]:
        """Return the user's memories. The tuple stays the same until a memory changes or the entry is evicted."""
        found = self._known(user_id)
        if found is None:
            found = tuple(self._read(user_id))
            self._keep(user_id, found)
        return found

    def follow(self, changes: Changes, user_ids: Iterable[str]) -> None:
        """Apply the changes of a batch to the cached memories of `user_ids`, the users of the batch."""
        remembered = {user_id: known for user_id in user_ids if (known := self._known(user_id)) is not None}
        if not remembered:
            return
        leaving = set(changes.leaving)
        born: defaultdict[str, list[Memory]] = defaultdict(list)
        for memory in changes.new.values():
            if memory.seq not in leaving:
                born[memory.user_id].append(memory)
        for user_id, known in remembered.items():
            kept = [changes.updated.get(memory.seq, memory) for memory in known if memory.seq not in leaving]
            new = born[user_id]
            merged = sorted([*kept, *new], key=lambda memory: (memory.created_at, memory.seq)) if new else kept
            if len(merged) != len(known) or any(one is not other for one, other in zip(merged, known, strict=True)):
                self._keep(user_id, tuple(merged))

    def forget(self, user_ids: Iterable[str]) -> None:
        """Drop these users from the cache; the next request reads them again."""
        for user_id in user_ids:
            self._recent.drop((self, user_id))

    def close(self) -> None:
        self._recent.drop_all(self)

    def _known(self, user_id: str) -> tuple[Memory, ...] | None:
        found: tuple[Memory, ...] | None = self._recent.get((self, user_id))
        return found

    def _keep(self, user_id: str, memories: tuple[Memory, ...]) -> None:
        self._recent.put((self, user_id), memories, bytes_of(memories))


def bytes_of(memories: Sequence[Memory]) -> int:
    """Estimate the size of these memories, in bytes. Metadata takes about four times as much as its JSON."""
    return 500 + sum(
        _MEMORY_BYTES + sys.getsizeof(memory.text) + 4 * len(orjson.dumps(memory.meta)) + 80 * len(memory.message_ids)
        for memory in memories
    )
