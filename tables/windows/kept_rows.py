"""Kept rows: the encoded rows of a table that its changelog already has, by partition, sorted by key."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Protocol

#: The number of rows that a scan reads at a time. This is also the maximum number that it holds in memory.
PORTION: Final = 1_000


class KeptRows(Protocol):
    """The rows of one table that its changelog already has.

    If they are on disk, `write` and `restore` only add to the partition's batch, which `WindowStores.commit` writes.
    """

    def get(self, partition: int, key: bytes) -> bytes | None: ...

    def scan(self, partition: int, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield the rows with this key prefix, in key order. Rows may be written during the scan."""

    def write(self, partition: int, rows: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Write rows that are already in the changelog. The value None deletes a row."""

    def restore(self, partition: int, rows: Sequence[tuple[bytes, bytes | None]]) -> None:
        """Write rows that were read from the changelog.

        If they delete rows, also request the erasure of the deleted rows from the disk. No forget command requests it
        on this worker, because the command was carried out before.
        """

    def partitions(self) -> Iterable[int]:
        """Return the partitions that may have kept rows."""

    def own(self, partitions: frozenset[int]) -> None:
        """Release the memory of all partitions that are not in `partitions`."""

    def is_fitted(self, partition: int) -> bool:
        """Return whether the partition's tables are consistent with each other.

        Rows that the present recovery restores are not considered.
        """


class MemoryRows:
    """Kept rows in memory, for a process that does not store them on disk: a replay, and most tests."""

    def __init__(self) -> None:
        self._rows: dict[int, dict[bytes, bytes]] = {}
        self._keys: dict[int, list[bytes]] = {}  # the sorted keys of a partition, built on demand

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
