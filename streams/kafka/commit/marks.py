"""Rows of a changelog that do not belong to its table: end marks, and how far its topic's records are in it.

Kafka's answers may be stale. A broker that was paused takes itself for the leader, or for the group's coordinator,
until it hears of the next one, and a new leader does not know at once which records all replicas have. Only a write
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
#: Its value is the offset before which the records of the topic's partition are in the rows, in digits.
READ: Final = MARK + b"read"


class Progress:
    """Up to where records of a topic are in a table's changelog, by partition.

    `committable` is up to where they are in memory: all that was changed by them is due, or written.
    """

    def __init__(self, committable: Callable[[], Mapping[int, int]]) -> None:
        self._committable = committable
        self._written: dict[int, int] = {}
        #: Partitions of which it is being written, and which have not moved since.
        self._under_way: set[int] = set()

    def written(self, partition: int) -> int:
        """Records before this offset are in the table; 0 where nothing is known."""
        return self._written.get(partition, 0)

    def restore(self, partition: int, value: bytes) -> None:
        """The changelog says so. Raises `ValueError` for what is no offset."""
        self._written[partition] = int(value)

    def resume(self, partition: int, offset: int) -> None:
        """The disk has the records before this offset."""
        self._written[partition] = offset

    def due(self) -> list[Change]:
        """What is to be written behind all rows that are due now."""
        reached = self._committable().items()
        due = [Change(p, READ, b"%d" % offset) for p, offset in reached if offset > self.written(p)]
        self._under_way = {change.partition for change in due}
        return due

    def wrote(self, due: Sequence[Change]) -> None:
        """The broker has taken these, which were due last."""
        for change in due:
            assert change.value is not None
            if change.partition in self._under_way:  # else it was read again, or its topic was made again
                self._written[change.partition] = int(change.value)

    def keep(self, partitions: Collection[int]) -> None:
        """Of all others nothing is known from now on."""
        self._written = {p: offset for p, offset in self._written.items() if p in partitions}
        self._under_way.intersection_update(partitions)

    def begin_anew(self, partition: int) -> None:
        """Its records are those of another log: however small their offsets are, they are news."""
        self._written.pop(partition, None)
        self._under_way.discard(partition)
