"""Positions: how far memory holds each changelog, so that partitions that stay are not read again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable


class Positions:
    """For each partition of one changelog: the offset up to which memory holds it, unwritten changes aside.

    It is known from the end of a recovery on. Our own rows advance it if they lie right behind it. If another
    writer's rows lie in between, or the broker did not acknowledge ours, it is unknown until the changelog is read
    again.

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
        #: Rows read or written, by partition, since its changelog was read from the start. A partition that was
        #: reassigned has no entry before its first rows, or the recovery's end.
        self.rows: Counter[int] = Counter()

    def known(self, partition: int) -> int | None:
        """Return the offset up to which memory has it; None also while rows are in flight: the log may lack them."""
        return self._reached.get(partition)

    def resume(self, partition: int, end: int, rows: int) -> None:
        """Take the position of the disk, which holds all records before `end` in `rows` rows."""
        self._reached[partition] = end
        self.rows[partition] = rows

    def read(self, partition: int, end: int, rows: int) -> None:
        """Note that all records before `end` were read, with `rows` more rows."""
        self._reached.pop(partition, None)  # after a recovery, read rows may be older than changes
        self._reading[partition] = end
        if rows:  # a mark is no row: a changelog of marks alone has no entry before the recovery's end
            self.rows[partition] += rows

    def marked(self, partition: int, offset: int) -> None:
        """Note the offset of our mark. If memory holds everything before it, the position moves behind it."""
        if self._reached.get(partition, 0) == offset:
            self._reached[partition] = offset + 1

    def recovered(self, partition: int, end: int, clean: bool = True) -> None:
        """Note the end of a recovery up to `end`; `clean` if nothing was changed meanwhile.

        The position is known only if everything up to `end` was read.
        """
        self.rows[partition] += 0
        reached = max(self._reading.pop(partition, 0), self._reached.pop(partition, 0))
        if clean and reached >= end:
            self._reached[partition] = reached

    def begin(self, partitions: Iterable[int]) -> None:
        """Rows of these partitions are about to be written."""
        self._under_way = {partition: self._reached.pop(partition, None) for partition in set(partitions)}

    def wrote(self, partition: int, offset: int, rows: int) -> None:
        """Note that the broker has taken `rows` rows, the first one at `offset`."""
        if partition not in self._under_way:
            return  # it has moved, or is read again: then these rows are counted when they are read
        follows = self._under_way[partition] == offset
        self._under_way[partition] = offset + rows if follows else None
        self.rows[partition] += rows

    def left_out(self, partition: int) -> None:
        """The broker refuses a row for good: memory has it, the changelog does not, so the position is unknown."""
        if partition in self._under_way:
            self._under_way[partition] = None

    def end(self) -> None:
        """All rows announced by `begin` are written."""
        self._reached |= {partition: end for partition, end in self._under_way.items() if end is not None}
        self._under_way.clear()

    def fail(self) -> None:
        """Some of the rows announced by `begin` may be written, so their partitions' positions stay unknown."""
        self._under_way.clear()

    def start_over(self, partition: int) -> None:
        """Forget the partition; its rows in flight do not count."""
        for held in (self._reading, self._reached, self._under_way, self.rows):
            held.pop(partition, None)

    def keep(self, partitions: Collection[int]) -> None:
        """Forget the positions of all other partitions. Rows in flight are no longer tracked."""
        self._reading.clear()
        self._under_way.clear()
        self._reached = {partition: self._reached[partition] for partition in partitions}
        self.rows = Counter({partition: self.rows[partition] for partition in partitions})
