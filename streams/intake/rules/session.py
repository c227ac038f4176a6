"""Session rules: how records, ratings and forget commands change a session's window.

They are pure functions of the session's value, its window and the records in log order. They use event times only, so
a replay of the same records makes the same decisions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from schemas.exchanges import Emptied, Exchange
from schemas.sessions import Session
from streams.intake.rules.advance import Advance, RuleParameters, SessionInput
from streams.intake.rules.session_changes import SessionChanges


class SessionRules(RuleParameters):
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
        """Apply `records` to a session and return the changes. Records are pairs of offset and input, in log order.

        `known` has the session's message ids. It is updated in place to the ids of the returned session: copying it
        for each batch would take as long as handling the messages. `exchange` returns a closed exchange by its
        number. `emptied` returns the end and the message ids of an exchange that has left the window, if they are
        still known.
        """
        return Advance(self, session, known, exchange, emptied).through(records)

    def answered(self, session: Session, exchange: Exchange, rating: int | None) -> SessionChanges:
        """Decide on an exchange by a model's rating, and return the changes. `rating` is None if there is none."""
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
        """Remove the exchanges that began up to `until` (epoch ms), decided on or not, and return the changes.

        Messages up to `until` are also removed from the open exchange. If such a message is read later, it is
        ignored. `exchange` and `emptied` are the same functions as in `advance`.

        Timestamps may be ahead of the Kafka records, so a message that existed at `until` may be dated after it.
        Therefore `until` is increased by the session's `lead`.
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
        """Remove the closed exchanges with the numbers `seqs`, decided on or not, and return the changes."""
        gone = [exchange(seq) for seq in dict.fromkeys((*session.window, *session.asked)) if seq in seqs]
        left_at = max([session.left_at, *(one.ended_at for one in gone)])
        numbers = [one.seq for one in gone]
        return SessionChanges(
            session.without(numbers)._replace(left_at=left_at),
            gone=numbers,
            left={one.seq: one.emptied() for one in gone if one.seq >= session.known},
        )
