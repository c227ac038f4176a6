"""Kept rows that count how many of them are read."""

from __future__ import annotations

from collections.abc import Iterator

from tables.windows.kept_rows import MemoryRows


class Counted(MemoryRows):
    """Counts the rows that are read."""

    read = 0

    def get(self, partition: int, key: bytes) -> bytes | None:
        self.read += 1
        return super().get(partition, key)

    def scan(self, partition: int, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        for row in super().scan(partition, prefix):
            self.read += 1
            yield row
