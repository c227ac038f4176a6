"""How many decoded rows stay in memory: those that were asked for last, in so many bytes."""

from __future__ import annotations

from collections.abc import Hashable, Sized
from typing import Final, Generic, Protocol, TypeVar

#: What a decoded row takes, by the bytes of its encoded one: objects and strings of their own for each field.
#: A bound. Measured, beside `EACH`: 1.0-1.6 for exchanges of 40 to 1,000 letters, 0.9 for Chinese ones, 1.7 for
#: notes, 1.8-4.1 for sessions and 5.7 for short messages with metadata. Chats thus take about a third of that.
DECODED: Final = 6
#: The row's key, its places in dictionaries, and its outermost object.
EACH: Final = 300


class Cached(Protocol):
    """A table's decoded rows that are kept as well, so that any of them may go."""

    def cached_bytes(self) -> int:
        """Roughly what those take that came since the last turn."""

    def turn(self) -> None:
        """Those go that were not asked for since the last turn."""


class Resident:
    """Of several tables together. Rows have two turns: who is asked for in the second stays for another.

    It costs a row nothing to be asked for again, where a list in the order of use would cost as much as the row.
    """

    def __init__(self, limit: int | None = None) -> None:
        self._half = None if limit is None else limit // 2
        self._tables: list[Cached] = []
        self._earlier_bytes = 0
        #: Rows that were not here, and were decoded again from where they are kept.
        self.read_back = 0

    def add(self, table: Cached) -> None:
        self._tables.append(table)

    def held_bytes(self) -> int:
        """Roughly what decoded rows take now, at the most."""
        return self._earlier_bytes + sum(table.cached_bytes() for table in self._tables)

    def came(self) -> None:
        """Rows came into one of the tables."""
        if self._half is not None and sum(table.cached_bytes() for table in self._tables) > self._half:
            self._earlier_bytes = sum(table.cached_bytes() for table in self._tables)
            for table in self._tables:
                table.turn()


Key = TypeVar("Key", bound=Hashable)
Held = TypeVar("Held", bound=Sized)


class Derived(Generic[Key, Held]):
    """Collections that were made of rows, by key: they are recreated where they are not here any more.

    One takes `each` bytes, and `item` for each thing in it.
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
        """As `get`, without counting as a use: the collection goes as early as before."""
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
