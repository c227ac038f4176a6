"""Ledger: the offset of a partition that may be committed, when whole batches are acknowledged."""

from __future__ import annotations

from collections import deque


class Ledger:
    """Delivered batches of one partition, in order, each known by its last offset.

    An offset may be committed when its batch and every earlier one are acknowledged. A batch that was taken
    off a queue and not processed is never acknowledged, so nothing behind it is committed: after a restart it
    is read again.

    >>> ledger = Ledger()
    >>> ledger.deliver(99); ledger.deliver(149)
    >>> ledger.acknowledge(149); ledger.committable() is None
    True
    >>> ledger.acknowledge(99); ledger.committable()
    150

    Some offsets have no record for us: the marker at the end of a transaction, records of an aborted one.

    >>> ledger.pass_over(150, 151); ledger.committable()
    151
    """

    __slots__ = ("_acknowledged", "_delivered", "_next", "_position", "start")

    def __init__(self) -> None:
        self._delivered: deque[int] = deque()
        self._acknowledged: set[int] = set()
        self._position: int | None = None
        self._next: int | None = None
        #: Where reading began.
        self.start = 0

    def begin(self, offset: int) -> None:
        """Start at this offset."""
        self._next = self.start = offset

    def deliver(self, last_offset: int) -> None:
        """Enter a batch that ends at `last_offset`, on its way to the agent. A known batch is ignored."""
        newest = self._delivered[-1] if self._delivered else (self._position or 0) - 1
        if last_offset > newest:
            self._delivered.append(last_offset)
            self._next = last_offset + 1

    def pass_over(self, start: int, end: int) -> None:
        """Skip offsets without a record, from `start` up to `end`. Ignored unless all before were delivered."""
        if self._next == start:
            self._next = end
            if not self._delivered:
                self._position = end

    def acknowledge(self, last_offset: int) -> None:
        """Note that the batch is processed. An unknown batch (from before a seek) is ignored."""
        if last_offset in self._delivered:
            self._acknowledged.add(last_offset)
            while self._delivered and self._delivered[0] in self._acknowledged:
                self._acknowledged.discard(self._delivered[0])
                self._position = self._delivered.popleft() + 1
            if not self._delivered:
                self._position = self._next

    def committable(self) -> int | None:
        """Return the offset to commit (that of the next record to read), or None if there is none yet."""
        return self._position

    @property
    def outstanding(self) -> int:
        """The number of delivered batches whose effects are not complete."""
        return len(self._delivered)
