"""Up to where a worker's memory holds what a changelog says, so that partitions that stay are not read again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable


class Positions:
    """Of each partition of one changelog: the offset up to which, what waits to be written aside, memory has it.

    It is known from the end of a recovery on. Our own rows count where they lie right behind it: with another's in
    between, or where the broker did not say that it took them, nothing is known until the changelog is read again.

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
        #: Rows that were read or written, by partition, since its changelog was read from the start; of one that
        #: came again there is no number before its first rows, or the recovery's end.
        self.rows: Counter[int] = Counter()

    def known(self, partition: int) -> int | None:
        """The offset up to which memory has it. None also while rows are in flight: the log may lack them."""
        return self._reached.get(partition)

    def resume(self, partition: int, end: int, rows: int) -> None:
        """The disk has all before the offset `end`: so many rows."""
        self._reached[partition] = end
        self.rows[partition] = rows

    def read(self, partition: int, end: int, rows: int) -> None:
        """All before the offset `end` was read: so many rows more."""
        self._reached.pop(partition, None)  # what comes after a recovery may be older than what has changed since
        self._reading[partition] = end
        if rows:  # a mark is none: of a changelog that has nothing else, nothing is known before the recovery's end
            self.rows[partition] += rows

    def marked(self, partition: int, offset: int) -> None:
        """A mark of ours lies there. Where nothing is between it and what memory has, all before it is known."""
        if self._reached.get(partition, 0) == offset:
            self._reached[partition] = offset + 1

    def recovered(self, partition: int, end: int, clean: bool = True) -> None:
        """A recovery up to `end` is over; `clean` where nothing was changed meanwhile.

        It is known to be of this assignment where all of that was read in it.
        """
        self.rows[partition] += 0
        reached = max(self._reading.pop(partition, 0), self._reached.pop(partition, 0))
        if clean and reached >= end:
            self._reached[partition] = reached

    def begin(self, partitions: Iterable[int]) -> None:
        """Rows of these partitions are about to be written."""
        self._under_way = {partition: self._reached.pop(partition, None) for partition in set(partitions)}

    def wrote(self, partition: int, offset: int, rows: int) -> None:
        """The broker has taken so many rows, the first one at `offset`."""
        if partition not in self._under_way:
            return  # it has moved meanwhile, or is read again: then these rows are counted where they are read
        follows = self._under_way[partition] == offset
        self._under_way[partition] = offset + rows if follows else None
        self.rows[partition] += rows

    def left_out(self, partition: int) -> None:
        """The broker refuses a row for good: memory has it, and the changelog has not."""
        if partition in self._under_way:
            self._under_way[partition] = None

    def end(self) -> None:
        """All rows that were about to be written are."""
        self._reached |= {partition: end for partition, end in self._under_way.items() if end is not None}
        self._under_way.clear()

    def fail(self) -> None:
        """Some of them may be."""
        self._under_way.clear()

    def begin_anew(self, partition: int) -> None:
        """Nothing of it is known from now on; its rows that are on their way count for nothing."""
        for held in (self._reading, self._reached, self._under_way, self.rows):
            held.pop(partition, None)

    def keep(self, partitions: Collection[int]) -> None:
        """Forget the positions of all other partitions. Rows in flight are no longer tracked."""
        self._reading.clear()
        self._under_way.clear()
        self._reached = {partition: self._reached[partition] for partition in partitions}
        self.rows = Counter({partition: self.rows[partition] for partition in partitions})
