"""Ledger: the offset of a partition that may be committed. Records are acknowledged in whole batches."""

from __future__ import annotations

from collections import deque


class Ledger:
    """Delivered batches of one partition, in order, each known by its last offset.

    An offset may be committed when its batch and all earlier batches are acknowledged. A batch that was taken
    off a queue but not processed is never acknowledged. So no later offset is committed, and the batch is read
    again after a restart.

    >>> ledger = Ledger()
    >>> ledger.deliver(99); ledger.deliver(149)
    >>> ledger.acknowledge(149); ledger.committable() is None
    True
    >>> ledger.acknowledge(99); ledger.committable()
    150

    Some offsets have no record that a consumer gets: the markers of transactions, and aborted records.

    >>> ledger.pass_over(150, 151); ledger.committable()
    151
    """

    __slots__ = ("_acknowledged", "_delivered", "_next", "_position", "start")

    def __init__(self) -> None:
        self._delivered: deque[int] = deque()
        self._acknowledged: set[int] = set()
        self._position: int | None = None
        self._next: int | None = None
        #: The offset from which on the partition is read.
        self.start = 0

    def begin(self, offset: int) -> None:
        """Note that the partition is read from this offset on."""
        self._next = self.start = offset

    def deliver(self, last_offset: int) -> None:
        """Add a batch that ends at `last_offset`, and that is now passed to the agent. A known batch is ignored."""
        newest = self._delivered[-1] if self._delivered else (self._position or 0) - 1
        if last_offset > newest:
            self._delivered.append(last_offset)
            self._next = last_offset + 1

    def pass_over(self, start: int, end: int) -> None:
        """Skip the offsets from `start` up to, not including, `end`, because they have no records.

        Do nothing unless all offsets before `start` were delivered or skipped.
        """
        if self._next == start:
            self._next = end
            if not self._delivered:
                self._position = end

    def acknowledge(self, last_offset: int) -> None:
        """Note that the batch that ends at `last_offset` is processed. A batch from before a seek is ignored."""
        if last_offset in self._delivered:
            self._acknowledged.add(last_offset)
            while self._delivered and self._delivered[0] in self._acknowledged:
                self._acknowledged.discard(self._delivered[0])
                self._position = self._delivered.popleft() + 1
            if not self._delivered:
                self._position = self._next

    def committable(self) -> int | None:
        """Return the offset to commit, which is the offset of the next record to read; None if there is none yet."""
        return self._position

    @property
    def outstanding(self) -> int:
        """The number of delivered batches from the first unacknowledged one on. They may not be committed yet."""
        return len(self._delivered)
