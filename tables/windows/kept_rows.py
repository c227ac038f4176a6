"""Where a table's rows are when its changelog has them: bytes by partition and key, in the order of their keys."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Protocol

#: A scan of many rows reads so many at once, and holds no more in memory.
PORTION: Final = 1_000


class KeptRows(Protocol):
    """Of one table. What is written counts when its partition's batch does; see `WindowStores`."""

    def get(self, partition: int, key: bytes) -> bytes | None: ...

    def scan(self, partition: int, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Rows whose keys begin so, in the order of their keys; rows may be written meanwhile."""

    def write(self, partition: int, rows: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Rows that the changelog has; None deletes."""

    def restore(self, partition: int, rows: Sequence[tuple[bytes, bytes | None]]) -> None:
        """Write rows of the changelog. Also erase deleted rows from the disk, as no command asks for that here."""

    def partitions(self) -> Iterable[int]:
        """Those of which rows may be kept."""

    def own(self, partitions: frozenset[int]) -> None:
        """Of all others nothing is held in memory any more."""

    def is_fitted(self, partition: int) -> bool:
        """Whether its tables fitted each other before anything was restored."""


class MemoryRows:
    """Rows of a process that has no disk for them: a replay's, and most tests'."""

    def __init__(self) -> None:
        self._rows: dict[int, dict[bytes, bytes]] = {}
        self._keys: dict[int, list[bytes]] = {}  # in order; made where it is asked for

    def get(self, partition: int, key: bytes) -> bytes | None:
        rows = self._rows.get(partition)
        return None if rows is None else rows.get(key)

    def scan(self, partition: int, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        rows = self._rows.get(partition, {})
        keys = self._keys.get(partition)
        if keys is None:
            keys = self._keys[partition] = sorted(rows)
        for place in range(bisect_left(keys, prefix), len(keys)):
            key = keys[place]
            if not key.startswith(prefix):
                return
            value = rows.get(key)
            if value is not None:
                yield key, value

    def write(self, partition: int, rows: Iterable[tuple[bytes, bytes | None]]) -> None:
        held = self._rows.setdefault(partition, {})
        for key, value in rows:
            if value is None:
                if held.pop(key, None) is not None:
                    self._keys.pop(partition, None)
            else:
                if key not in held:
                    self._keys.pop(partition, None)
                held[key] = value

    restore = write

    def partitions(self) -> Iterable[int]:
        return list(self._rows)

    def own(self, partitions: frozenset[int]) -> None:
        self._rows = {p: rows for p, rows in self._rows.items() if p in partitions}
        self._keys = {p: keys for p, keys in self._keys.items() if p in partitions}

    def is_fitted(self, partition: int) -> bool:
        return False
