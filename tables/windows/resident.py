"""Resident rows: caches that keep the most recently used rows decoded in memory, within a common limit in bytes."""

from __future__ import annotations

from collections.abc import Hashable, Sized
from typing import Final, Generic, Protocol, TypeVar

#: Upper bound of the bytes of memory that a decoded row takes for each byte of its encoded form, in addition to
#: `EACH`. We measured 1.0-1.6 for exchanges of 40 to 1,000 letters, 0.9 for exchanges in Chinese, 1.7 for notes,
#: 1.8-4.1 for sessions, and 5.7 for short messages with metadata. So usual chats take about a third of the estimate.
DECODED: Final = 6
#: Bytes of memory that are added for each row: for its key, its entries in dictionaries, and its outermost object.
EACH: Final = 300


class Cached(Protocol):
    """A table's cache of decoded rows. All rows are also stored elsewhere, so any of them may be evicted."""

    def cached_bytes(self) -> int:
        """Return the approximate bytes of memory of the rows that were used since the last `turn`."""

    def turn(self) -> None:
        """Evict the rows that were not used since the last `turn`."""


class Resident:
    """A common memory limit, in bytes, for the caches of several tables. If `limit` is None, there is no limit.

    Each cache has two generations (the second-chance algorithm). A row that is used while it is in the second
    generation moves back to the first. This needs no extra memory for each row. A list of the rows in the order of
    their use would need as much memory as the rows themselves.
    """

    def __init__(self, limit: int | None = None) -> None:
        self._half = None if limit is None else limit // 2
        self._tables: list[Cached] = []
        self._earlier_bytes = 0
        #: The number of lookups of a row that was not in a cache, and was decoded again from the kept rows.
        self.read_back = 0

    def add(self, table: Cached) -> None:
        self._tables.append(table)

    def held_bytes(self) -> int:
        """Return an upper estimate of the bytes of memory of all cached rows."""
        return self._earlier_bytes + sum(table.cached_bytes() for table in self._tables)

    def came(self) -> None:
        """Call `turn` on all caches if the rows used since its last call exceed half of the limit.

        A table calls this after it has added rows to its cache.
        """
        if self._half is not None and sum(table.cached_bytes() for table in self._tables) > self._half:
            self._earlier_bytes = sum(table.cached_bytes() for table in self._tables)
            for table in self._tables:
                table.turn()


Key = TypeVar("Key", bound=Hashable)
Held = TypeVar("Held", bound=Sized)


class Derived(Generic[Key, Held]):
    """A cache of collections, by key, that the caller computes from rows. The caller recomputes evicted collections.

    For the memory limit, a collection counts as `each` bytes, plus `item` bytes for each element.
    """

    def __init__(self, each: int, item: int) -> None:
        self._each, self._item = each, item
        self._recent: dict[Key, Held] = {}
        self._earlier: dict[Key, Held] = {}
        self._items = 0

    def get(self, key: Key) -> Held | None:
        found = self._recent.get(key)
        if found is None and (found := self._earlier.pop(key, None)) is not None:
            self.keep(key, found)
        return found

    def held(self, key: Key) -> Held | None:
        """Return the same as `get`, but do not count this as a use, which would delay the eviction."""
        found = self._recent.get(key)
        return self._earlier.get(key) if found is None else found

    def keep(self, key: Key, held: Held) -> None:
        self._recent[key] = held
        self._items += len(held)

    def forget(self, key: Key) -> None:
        self._recent.pop(key, None)
        self._earlier.pop(key, None)

    def clear(self) -> None:
        self._recent, self._earlier, self._items = {}, {}, 0

    def cached_bytes(self) -> int:
        return len(self._recent) * self._each + self._items * self._item

    def turn(self) -> None:
        self._earlier, self._recent, self._items = self._recent, {}, 0
