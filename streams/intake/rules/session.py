"""Session rules: how records, ratings and forget commands change a session's window.

A pure function of the session's value, its window and the records, in log order. It uses event times only, so a
replay of the same records makes the same decisions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from schemas.exchanges import Emptied, Exchange
from schemas.sessions import Session
from streams.intake.rules.advance import Advance, Rules, SessionInput
from streams.intake.rules.session_changes import SessionChanges


class SessionRules(Rules):
    """The rules of the settings, for any session. Without `triggers`, no summaries are requested."""

    def advance(
        self,
        session: Session,
        records: Iterable[tuple[int, SessionInput]],
        *,
        known: set[str],
        exchange: Callable[[int], Exchange],
        emptied: Callable[[int], Emptied | None] = lambda seq: None,
    ) -> SessionChanges:
        """Return the session after `records`, which are pairs of offset and record, in log order.

        `known` has the session's message ids, and is updated in place to those of the returned session: a copy for
        each batch would cost as much as the messages. `exchange` returns a closed exchange of the window, `emptied`
        what is known of one that has left it.
        """
        return Advance(self, session, known, exchange, emptied).through(records)

    def answered(self, session: Session, exchange: Exchange, rating: int | None) -> SessionChanges:
        """Return the session after an exchange's requested rating; None if the model gave none."""
        asked = tuple(seq for seq in session.asked if seq != exchange.seq)
        return SessionChanges(
            session._replace(asked=asked),
            gone=[] if exchange.seq in session.window else [exchange.seq],
            decisions=[self.promoter.rated(exchange, rating)],
        )

    def forgotten(
        self,
        session: Session,
        until: int,
        exchange: Callable[[int], Exchange],
        emptied: Callable[[int], Emptied | None] = lambda seq: None,
    ) -> SessionChanges:
        """Return the session without the exchanges that began up to `until` (epoch ms), decided on or not.

        The open exchange loses its messages up to then, and such messages are ignored from now on. `exchange` returns
        a closed exchange of the session, `emptied` what is known of one that has left. Conversations and commands are
        two topics without a common order: a message that existed at `until` may be dated later, by as much as the
        session's messages are dated ahead of their records.
        """
        until += session.lead
        held = map(exchange, dict.fromkeys((*session.window, *session.asked)))
        gone = [one for one in held if one.started_at <= until]
        numbers = [one.seq for one in gone]
        known = {seq: one for seq in session.emptied if (one := emptied(seq)) is not None}
        return SessionChanges(
            session.without(numbers)._replace(
                open=tuple(message for message in session.open if message.timestamp > until),
                left_at=max([session.left_at, *(one.ended_at for one in gone)]),
                horizon=max(session.horizon, until),
            ),
            gone=numbers,
            left={one.seq: one.emptied() for one in gone if one.ended_at > until},
            unknown=[seq for seq, one in known.items() if one.ended_at <= until],
        )

    def without(self, session: Session, seqs: Collection[int], exchange: Callable[[int], Exchange]) -> SessionChanges:
        """Return the session without some of its closed exchanges, decided on or not."""
        gone = [exchange(seq) for seq in dict.fromkeys((*session.window, *session.asked)) if seq in seqs]
        left_at = max([session.left_at, *(one.ended_at for one in gone)])
        numbers = [one.seq for one in gone]
        return SessionChanges(
            session.without(numbers)._replace(left_at=left_at),
            gone=numbers,
            left={one.seq: one.emptied() for one in gone if one.seq >= session.known},
        )
