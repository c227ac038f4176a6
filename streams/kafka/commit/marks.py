"""Special rows of a changelog, which do not belong to its table: end marks, and the progress in the source topic.

Kafka's answers may be stale. After a pause, a broker still acts as leader, or as the group's coordinator, until it
hears of its successor. A new leader does not know at once which records all replicas have. Only a write that the
replicas acknowledge is certain. So the new owner of a partition writes a mark to the changelog, and reads the
changelog up to this mark. A committed offset may be stale as well. So the changelog also stores the offset before
which all records of the source topic are in the table.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from tables.windows.rows import Change

#: The first byte of each special row's key. No key of a table begins with it.
MARK: Final = b"\x00"
#: The key of an end mark. A worker writes an end mark to a changelog, and then reads up to it. The mark is a
#: tombstone, so compaction removes it.
END: Final = MARK + b"end"
#: The key of the row with the progress. Its value is an offset in digits: all records before it, in the same
#: partition of the source topic, are in the table's rows.
READ: Final = MARK + b"read"


class Progress:
    """By partition, the offset before which all records of the source topic are in a table's changelog.

    `committable` returns, by partition, the offset before which all records are processed in memory. The changes by
    these records are in the changelog, or the next flush writes them.
    """

    def __init__(self, committable: Callable[[], Mapping[int, int]]) -> None:
        self._committable = committable
        self._written: dict[int, int] = {}
        #: Partitions whose offset is being written. A partition that moves to another worker is removed.
        self._under_way: set[int] = set()

    def written(self, partition: int) -> int:
        """Return the offset before which all records of the partition are in the table; 0 if it is unknown."""
        return self._written.get(partition, 0)

    def restore(self, partition: int, value: bytes) -> None:
        """Set the partition's offset to a value from the changelog. Raises `ValueError` if it is not a number."""
        self._written[partition] = int(value)

    def resume(self, partition: int, offset: int) -> None:
        """Set the partition's offset from its store on disk, whose rows include all records before the offset."""
        self._written[partition] = offset

    def due(self) -> list[Change]:
        """Return a change of the changelog for each advanced offset. Write these changes after all other changes."""
        reached = self._committable().items()
        due = [Change(p, READ, b"%d" % offset) for p, offset in reached if offset > self.written(p)]
        self._under_way = {change.partition for change in due}
        return due

    def wrote(self, due: Sequence[Change]) -> None:
        """Record these changes as acknowledged by the broker. They come from the last call of `due()`."""
        for change in due:
            assert change.value is not None
            if change.partition in self._under_way:  # otherwise the partition was reassigned or reset meanwhile
                self._written[change.partition] = int(change.value)

    def keep(self, partitions: Collection[int]) -> None:
        """Forget the offsets of all partitions except these."""
        self._written = {p: offset for p, offset in self._written.items() if p in partitions}
        self._under_way.intersection_update(partitions)

    def start_over(self, partition: int) -> None:
        """Forget the partition's offset, so that all of its records count as new, even those at small offsets."""
        self._written.pop(partition, None)
        self._under_way.discard(partition)
