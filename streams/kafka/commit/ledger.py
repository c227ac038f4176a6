"""Which offset of a partition may be committed, when whole batches are acknowledged."""

from __future__ import annotations

from collections import deque


class Ledger:
    """Delivered batches of one partition, in order, each known by its last offset.

    An offset may be committed when its batch and every earlier one are acknowledged. A batch that was taken
    off a queue without being processed is never acknowledged, so nothing behind it is committed: after a
    restart it is read again.

    >>> ledger = Ledger()
    >>> ledger.deliver(99); ledger.deliver(149)
    >>> ledger.acknowledge(149); ledger.committable() is None
    True
    >>> ledger.acknowledge(99); ledger.committable()
    150

    Offsets may hold no record for us: the marker at the end of a transaction, records of one that was aborted.

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
        """The partition is read from this offset on."""
        self._next = self.start = offset

    def deliver(self, last_offset: int) -> None:
        """A batch that ends at `last_offset` is on its way to the agent. One that was there before is ignored."""
        newest = self._delivered[-1] if self._delivered else (self._position or 0) - 1
        if last_offset > newest:
            self._delivered.append(last_offset)
            self._next = last_offset + 1

    def pass_over(self, start: int, end: int) -> None:
        """No record has an offset from `start` up to `end`. Ignored where one before `start` was not delivered."""
        if self._next == start:
            self._next = end
            if not self._delivered:
                self._position = end

    def acknowledge(self, last_offset: int) -> None:
        """The batch is processed. One that this ledger does not know (from before a seek) is ignored."""
        if last_offset in self._delivered:
            self._acknowledged.add(last_offset)
            while self._delivered and self._delivered[0] in self._acknowledged:
                self._acknowledged.discard(self._delivered[0])
                self._position = self._delivered.popleft() + 1
            if not self._delivered:
                self._position = self._next

    def committable(self) -> int | None:
        """The offset to commit (that of the next record to read), or None while there is none."""
        return self._position

    @property
    def outstanding(self) -> int:
        """Batches that were delivered and whose effects are not complete."""
        return len(self._delivered)
