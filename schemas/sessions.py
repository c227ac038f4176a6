"""The row of a session: the numbers of the exchanges in its window, its open exchange, and the state of the rules."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from schemas.exchanges import Exchange, Message


class Session(NamedTuple):
    """A session's window without the text of its closed exchanges. Times are epoch milliseconds of event time.

    The window has the exchanges with `first <= seq < next`, without those in `missing`, which were removed or split
    into new exchanges. `pending` has the exchanges that are not yet evaluated for promotion. `asked` has the
    exchanges whose rating was requested; each is kept until its rating is known, even after it has left the window.
    `left_at` is the time of the newest message that has left the window. `exchanges` is the number of exchanges since
    the session began. `offset` is the offset of the newest record of `conversations` that the row includes.

    The last summary covered the messages up to the time `summed_up`, and `said` is the number of user messages since
    then. The day of these later messages ends at `day_ends`, which is 0 if there are none. `lead` is the maximum time
    in ms by which a message's timestamp was ahead of the timestamp of its record.

    For the exchanges with `known <= seq < first`, and for those in `missing`, emptied rows keep the message ids, so
    that repeated messages are recognized. A message with a time up to `horizon` counts as repeated without a row,
    because it was read before, or forgotten.
    """

    user_id: str
    session_id: str
    offset: int = -1
    last_at: int = 0
    open: tuple[Message, ...] = ()
    first: int = 0
    next: int = 0
    missing: tuple[int, ...] = ()
    left_at: int = 0
    pending: tuple[int, ...] = ()
    asked: tuple[int, ...] = ()
    exchanges: int = 0
    ended: bool = False
    said: int = 0
    summed_up: int = 0
    day_ends: int = 0
    lead: int = 0
    known: int = 0
    horizon: int = 0

    @property
    def window(self) -> Sequence[int]:
        """The numbers of the exchanges in the window, oldest first."""
        whole = range(self.first, self.next)
        return [seq for seq in whole if seq not in self.missing] if self.missing else whole

    @property
    def named(self) -> Collection[int]:
        """The numbers of all exchanges that the session keeps: in the window, or waiting for their rating."""
        return {*self.window, *self.asked} if self.asked or self.missing else self.window

    @property
    def emptied(self) -> Collection[int]:
        """The numbers of the exchanges that may have an emptied row.

        An exchange that waits for its rating may have an emptied row in addition to its full row.
        """
        return {*range(self.known, self.first), *self.missing}

    def without(self, seqs: Collection[int]) -> Session:
        """Return a copy of the session without the closed exchanges that have these numbers."""
        missing = {*self.missing, *(seq for seq in seqs if seq >= self.first)}
        first = self.first
        while first in missing:
            missing.remove(first)
            first += 1
        return self._replace(
            first=first,
            missing=tuple(sorted(missing)),
            pending=tuple(seq for seq in self.pending if seq not in seqs),
            asked=tuple(seq for seq in self.asked if seq not in seqs),
        )

    @property
    def open_exchange(self) -> Exchange:
        """The exchange that is still open. It has the messages since the last exchange was closed."""
        return Exchange(self.next, self.open)
