"""Resident rows: the most recently used decoded rows stay in memory, up to a number of bytes."""

from __future__ import annotations

from collections.abc import Hashable, Sized
from typing import Final, Generic, Protocol, TypeVar

#: Upper bound of a decoded row's bytes per encoded byte: each field has objects and strings of its own. Measured,
#: besides `EACH`: 1.0-1.6 for exchanges of 40 to 1,000 letters, 0.9 for Chinese ones, 1.7 for notes, 1.8-4.1 for
#: sessions and 5.7 for short messages with metadata. Chats thus take about a third of the bound.
DECODED: Final = 6
#: Bytes for the row's key, its entries in dictionaries, and its outermost object.
EACH: Final = 300


class Cached(Protocol):
    """A table's cached decoded rows; the rows are kept elsewhere, so any of them may be evicted."""

    def cached_bytes(self) -> int:
        """Return roughly the bytes of the rows used since the last turn."""

    def turn(self) -> None:
        """Evict the rows that were not used since the last turn."""


class Resident:
    """One limit for several tables: a second-chance cache of two generations.

    A row that is used in its second generation moves back to the first. This costs a row nothing, while a list in
    order of use would cost as much as the row.
    """

    def __init__(self, limit: int | None = None) -> None:
        self._half = None if limit is None else limit // 2
        self._tables: list[Cached] = []
        self._earlier_bytes = 0
        #: Count of rows that were not in memory and were decoded again from the kept rows.
        self.read_back = 0

    def add(self, table: Cached) -> None:
        self._tables.append(table)

    def held_bytes(self) -> int:
        """Return roughly the bytes of all decoded rows, at most."""
        return self._earlier_bytes + sum(table.cached_bytes() for table in self._tables)

    def came(self) -> None:
        """Start a new turn if the tables' new rows exceed half of the limit. Call it after adding rows."""
        if self._half is not None and sum(table.cached_bytes() for table in self._tables) > self._half:
            self._earlier_bytes = sum(table.cached_bytes() for table in self._tables)
            for table in self._tables:
                table.turn()


Key = TypeVar("Key", bound=Hashable)
Held = TypeVar("Held", bound=Sized)


class Derived(Generic[Key, Held]):
    """Cache of collections computed from rows, by key; the caller recomputes evicted ones.

    A collection counts as `each` bytes, and `item` bytes for each element.
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
        """As `get`, without counting as a use: eviction is not delayed."""
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
