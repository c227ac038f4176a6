"""Kept rows: the rows of a table that its changelog has, as bytes by partition and key, in key order."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Protocol

#: A scan reads this many rows at a time, and holds no more in memory.
PORTION: Final = 1_000


class KeptRows(Protocol):
    """The kept rows of one table. A write counts once its partition's batch is committed; see `WindowStores`."""

    def get(self, partition: int, key: bytes) -> bytes | None: ...

    def scan(self, partition: int, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield the rows with this key prefix, in key order; rows may be written meanwhile."""

    def write(self, partition: int, rows: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Write rows that the changelog has; None deletes."""

    def restore(self, partition: int, rows: Sequence[tuple[bytes, bytes | None]]) -> None:
        """Write rows read from the changelog. Also erase deleted ones from the disk: no command asks for it here."""

    def partitions(self) -> Iterable[int]:
        """Return the partitions that may have kept rows."""

    def own(self, partitions: frozenset[int]) -> None:
        """Release the memory held for all other partitions."""

    def is_fitted(self, partition: int) -> bool:
        """True if the partition's tables were consistent with each other before anything was restored."""


class MemoryRows:
    """Kept rows of a process without a disk for them: a replay, and most tests."""

    def __init__(self) -> None:
        self._rows: dict[int, dict[bytes, bytes]] = {}
        self._keys: dict[int, list[bytes]] = {}  # sorted; built on demand

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
