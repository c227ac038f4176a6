"""Rows of a changelog that are not its table's: end marks, and the offset up to which records are in the table.

Kafka's answers may be stale. A broker that was paused still acts as leader, or as the group's coordinator, until it
hears of the next one, and a new leader does not know at once which records all replicas have. Only a write
that the replicas acknowledge is certain, so the new owner of a partition writes a mark and reads up to it. A
committed offset may be stale as well, so the changelog stores the offset up to which records are in the windows.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from tables.windows.rows import Change

#: No table's key begins with this.
MARK: Final = b"\x00"
#: A reader of a changelog writes one of these, and reads up to it. It is a tombstone, so compaction removes it.
END: Final = MARK + b"end"
#: The value, in digits: the offset before which the records of the topic's partition are in the rows.
READ: Final = MARK + b"read"


class Progress:
    """The offset before which records of a topic are in a table's changelog, by partition.

    `committable` returns the offsets before which they are in memory: their changes are due, or written.
    """

    def __init__(self, committable: Callable[[], Mapping[int, int]]) -> None:
        self._committable = committable
        self._written: dict[int, int] = {}
        #: Partitions whose offset is being written, and which have not moved since.
        self._under_way: set[int] = set()

    def written(self, partition: int) -> int:
        """Return the offset before which records are in the table; 0 if unknown."""
        return self._written.get(partition, 0)

    def restore(self, partition: int, value: bytes) -> None:
        """Take the offset from the changelog. Raises `ValueError` if it is not a number."""
        self._written[partition] = int(value)

    def resume(self, partition: int, offset: int) -> None:
        """Take the offset from the disk: it has the records before it."""
        self._written[partition] = offset

    def due(self) -> list[Change]:
        """Return the offsets to write behind all rows that are due now."""
        reached = self._committable().items()
        due = [Change(p, READ, b"%d" % offset) for p, offset in reached if offset > self.written(p)]
        self._under_way = {change.partition for change in due}
        return due

    def wrote(self, due: Sequence[Change]) -> None:
        """Note that the broker has acknowledged these changes of the last `due`."""
        for change in due:
            assert change.value is not None
            if change.partition in self._under_way:  # else it was read again, or its topic was recreated
                self._written[change.partition] = int(change.value)

    def keep(self, partitions: Collection[int]) -> None:
        """Forget all other partitions."""
        self._written = {p: offset for p, offset in self._written.items() if p in partitions}
        self._under_way.intersection_update(partitions)

    def start_over(self, partition: int) -> None:
        """Forget the partition: its records are of another log, and new even at small offsets."""
        self._written.pop(partition, None)
        self._under_way.discard(partition)
