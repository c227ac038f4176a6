"""Positions: the offset up to which memory holds each changelog.

With these offsets, the changelogs of partitions that stay with this worker need not be read again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable


class Positions:
    """The position in each partition of one changelog: memory holds all records before this offset.

    Changes in memory that are not written yet do not count. A position becomes known when a recovery ends. Rows of
    this worker advance the position if they are written directly behind it. If another writer's rows lie in between,
    or if the broker did not acknowledge our rows, the position is unknown until the changelog is read again.

    >>> positions = Positions()
    >>> positions.read(0, 10, rows=10); positions.recovered(0, 10)
    >>> positions.begin([0]); positions.wrote(0, 10, 5); positions.end()
    >>> positions.known(0)
    15
    >>> positions.begin([0]); positions.wrote(0, 99, 5); positions.end()
    >>> positions.known(0) is None
    True
    """

    def __init__(self) -> None:
        self._reading: dict[int, int] = {}
        self._reached: dict[int, int] = {}
        self._under_way: dict[int, int | None] = {}
        #: By partition, the number of rows that were read or written since its changelog was last read from the
        #: start. A partition that was reassigned has no entry until its first rows are read, or its recovery ends.
        self.rows: Counter[int] = Counter()

    def known(self, partition: int) -> int | None:
        """Return the partition's position; None if it is unknown.

        It is also unknown while rows are in flight, because the log may not have them yet.
        """
        return self._reached.get(partition)

    def resume(self, partition: int, end: int, rows: int) -> None:
        """Set the position and the number of rows from the store on disk, which has all records before `end`."""
        self._reached[partition] = end
        self.rows[partition] = rows

    def read(self, partition: int, end: int, rows: int) -> None:
        """Note that all records before `end` were read. `rows` is the number of rows among the new records."""
        self._reached.pop(partition, None)  # a row that is read after a recovery may be older than the row in memory
        self._reading[partition] = end
        if rows:  # a changelog that has only marks, and no rows, gets its entry in `recovered`
            self.rows[partition] += rows

    def marked(self, partition: int, offset: int) -> None:
        """Note the offset of our end mark. If memory holds all records before it, the position moves behind it."""
        if self._reached.get(partition, 0) == offset:
            self._reached[partition] = offset + 1

    def recovered(self, partition: int, end: int, clean: bool = True) -> None:
        """Note that a recovery, which had to read all records before `end`, has ended.

        The position is known only if all of them were read, and if no row was changed meanwhile (`clean`).
        """
        self.rows[partition] += 0
        reached = max(self._reading.pop(partition, 0), self._reached.pop(partition, 0))
        if clean and reached >= end:
            self._reached[partition] = reached

    def begin(self, partitions: Iterable[int]) -> None:
        """Note that rows of these partitions are about to be written. Meanwhile their positions are unknown."""
        self._under_way = {partition: self._reached.pop(partition, None) for partition in set(partitions)}

    def wrote(self, partition: int, offset: int, rows: int) -> None:
        """Note that the broker has acknowledged `rows` rows, the first one at `offset`."""
        if partition not in self._under_way:
            return  # the partition was reassigned or reset, so its rows are counted when they are read
        follows = self._under_way[partition] == offset
        self._under_way[partition] = offset + rows if follows else None
        self.rows[partition] += rows

    def left_out(self, partition: int) -> None:
        """Note that the broker refuses a row of the partition for good.

        Memory has the row but the changelog does not, so the position is unknown.
        """
        if partition in self._under_way:
            self._under_way[partition] = None

    def end(self) -> None:
        """Note that all rows that `begin` announced are written."""
        self._reached |= {partition: end for partition, end in self._under_way.items() if end is not None}
        self._under_way.clear()

    def fail(self) -> None:
        """Note that the rows that `begin` announced could not all be written.

        Some of them may be in the changelog, so the positions of their partitions stay unknown.
        """
        self._under_way.clear()

    def start_over(self, partition: int) -> None:
        """Forget the partition's position and rows. Rows that are in flight will not be counted."""
        for held in (self._reading, self._reached, self._under_way, self.rows):
            held.pop(partition, None)

    def keep(self, partitions: Collection[int]) -> None:
        """Forget the positions of all partitions except these. Rows in flight are no longer tracked."""
        self._reading.clear()
        self._under_way.clear()
        self._reached = {partition: self._reached[partition] for partition in partitions}
        self.rows = Counter({partition: self.rows[partition] for partition in partitions})
