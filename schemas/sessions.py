"""The row of a session: the numbers of its window's exchanges, its open exchange, and the state of its rules."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from schemas.exchanges import Exchange, Message


class Session(NamedTuple):
    """A session's window without the text of its closed exchanges.

    The window has the exchanges `first <= seq < next`, without the `missing` ones, which were removed or split into
    new exchanges. `left_at` is the time of the newest message that left the window. `pending` are the exchanges that
    are not yet evaluated for promotion. `asked` are the exchanges whose rating was requested; they are kept until it
    is known, even after they left the window. `exchanges` is the number of exchanges since the session began.
    `offset` is that of the newest record of `conversations` that is included. `said` is the number of user messages
    since the last summary, which covered the messages up to the time `summed_up`. The day of the later messages ends
    at `day_ends`; 0 if there are none. `lead` is the most milliseconds by which a message was dated after its record.

    For the exchanges `known <= seq < first`, and for the missing ones, emptied rows keep the message ids, so that
    repeated messages are recognized. Messages dated up to `horizon` are recognized without a row, because they were
    read before, or forgotten. Times are epoch milliseconds of event time.
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
        """The numbers of all exchanges that the session keeps: in the window, or waiting for a rating."""
        return {*self.window, *self.asked} if self.asked or self.missing else self.window

    @property
    def emptied(self) -> Collection[int]:
        """The numbers of the exchanges that may have an emptied row.

        An exchange that waits for its rating may have an emptied row besides its own.
        """
        return {*range(self.known, self.first), *self.missing}

    def without(self, seqs: Collection[int]) -> Session:
        """Return the session without these closed exchanges."""
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
        """The messages since the last exchange was closed, as an exchange."""
        return Exchange(self.next, self.open)
