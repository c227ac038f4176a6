"""Explanations in plain words: why an exchange of a session was kept, dropped, or is not decided yet.

Decisions are not stored with the window. So this module computes them again with a `Promoter` of the present
settings. The result is the same, because a score depends only on the text and on `fullness`, and `fullness` is always
at its maximum when an exchange is scored: the session is then longer than the threshold, or the exchange leaves the
window.
"""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from schemas.conversations import Role
from schemas.events import Parts
from schemas.exchanges import Exchange
from schemas.sessions import Session
from schemas.settings import MemorySettings
from streams.intake.rules.decision import Decision, Estimator, RatingNeeded
from streams.intake.rules.decision_wording import Wording, lasting
from streams.intake.rules.excluded_sources import promoter_of

#: The reason in `parts` while the decision depends on a rating that is not known yet.
VALUE_WANTED = "value_wanted"


class Status(StrEnum):
    """The status of an exchange.

    WAITING: closed, and not scored yet. ASKED: a rating by the model is pending. UNSPOKEN: it has only system and
    tool messages, so there is nothing to decide.
    """

    OPEN = "open"
    WAITING = "waiting"
    ASKED = "asked"
    PROMOTED = "promoted"
    DROPPED = "dropped"
    UNSPOKEN = "unspoken"


@dataclass(frozen=True, slots=True)
class Waits:
    """A waiting exchange is scored when `exchanges` more exchanges have closed, or when the session ends.

    Without further messages, the session ends at `session_ends_at` (epoch ms of event time).
    """

    exchanges: int
    session_ends_at: int


@dataclass(frozen=True, slots=True)
class Explanation:
    """The status of an exchange, the reason for it (`why`), and what would change it (`change`).

    For an open or waiting exchange, `outlook` is the status that it would get if it were scored now. `importance` and
    `parts` belong to `outlook` if there is one, else to `status`. `importance` is None while a rating is needed.
    `importance` and `parts` are None if neither a user nor an assistant has spoken. `memory_id` is the id of the
    memory that was made, or would be made, from a closed exchange.
    """

    exchange: Exchange
    status: Status
    why: str
    change: str
    memory_id: uuid.UUID | None = None
    outlook: Status | None = None
    importance: int | None = None
    parts: Parts | None = None
    waits: Waits | None = None


class Explainer:
    """Explains the exchanges of sessions by the rules of the settings.

    With an `estimator`, every rating is computed locally. Without an estimator, the model `rater_name` rates:
    `questions` returns the exchanges that need a rating, and the caller passes the known ratings to `explain`.
    """

    def __init__(self, memory: MemorySettings, estimator: Estimator | None, rater_name: str) -> None:
        self._memory, self._estimator = memory, estimator
        self._promoter = promoter_of(memory, None)
        self._words = Wording(self._promoter, rater_name)
        self.rater_name = rater_name

    def questions(self, exchanges: Iterable[Exchange]) -> list[Exchange]:
        """Return the exchanges whose decision depends on a rating that only the model can give."""
        return [exchange for exchange in exchanges if exchange.spoken and self._decision(exchange, {}) is None]

    def explain(
        self, session: Session, exchanges: Iterable[Exchange], ratings: Mapping[int, int]
    ) -> list[Explanation]:
        """Explain the given closed or open exchanges of a session.

        `ratings` has the model's known ratings, by exchange number.
        """
        turns = self._turns(session)
        return [self._explain(session, exchange, ratings, turns) for exchange in exchanges]

    def _explain(
        self, session: Session, exchange: Exchange, ratings: Mapping[int, int], turns: Mapping[int, int]
    ) -> Explanation:
        status = _undecided(session, exchange)
        if not exchange.spoken:
            return self._unspoken(exchange, status or Status.UNSPOKEN)
        decision = None if status is Status.ASKED else self._decision(exchange, ratings)
        unknown = self._promoter.rated(exchange, None)
        if decision is None and status is None:  # the exchange was decided, but without a rating
            decision = unknown
        parts = replace(unknown.parts, reason=VALUE_WANTED) if decision is None else decision.parts
        outcome = Status.ASKED if decision is None else Status.PROMOTED if decision.kept else Status.DROPPED
        grounds = self._words.question(parts) if decision is None else self._words.grounds(decision)
        fate = "asked about" if outcome is Status.ASKED else outcome.value
        explanation = Explanation(
            exchange,
            status or outcome,
            f"{fate.capitalize()}: {grounds}.",
            self._words.change(exchange, parts),
            memory_id=exchange.memory_id(session.user_id, session.session_id),
            importance=None if decision is None else decision.importance,
            parts=parts,
        )
        as_things_stand = f"As things stand it would be {fate}: {grounds}."
        match status:
            case Status.OPEN:
                why = f"{self._closing(exchange)} {as_things_stand}"
                return replace(explanation, why=why, outlook=outcome, memory_id=None)
            case Status.WAITING:
                ends_at = session.last_at + self._memory.session_idle_seconds * 1000
                waits = Waits(turns[exchange.seq], ends_at)
                return replace(
                    explanation, why=f"{self._until(waits)} {as_things_stand}", outlook=outcome, waits=waits
                )
            case Status.ASKED if self._estimator is not None:
                return replace(explanation, why=_NOBODY_ASKS)
        return explanation

    def _unspoken(self, exchange: Exchange, status: Status) -> Explanation:
        why = "Only system and tool messages: they are never promoted by themselves."
        if status is Status.OPEN:
            why = f"{self._closing(exchange)} {why}"
        return Explanation(exchange, status, why, "Messages of users and assistants are scored.")

    def _decision(self, exchange: Exchange, ratings: Mapping[int, int]) -> Decision | None:
        """Return the decision that scoring the exchange gives; None if it depends on a rating that is not known."""
        verdict = self._promoter.at_close(exchange) or self._promoter.score(exchange, 0, leaving=True)
        if not isinstance(verdict, RatingNeeded):
            return verdict
        rating = (
            ratings.get(exchange.seq)
            if self._estimator is None
            else self._estimator(*self._promoter.heard(exchange).said())
        )
        return None if rating is None else self._promoter.rated(exchange, rating)

    def _turns(self, session: Session) -> dict[int, int]:
        """Return, for each waiting exchange by its number, how many more exchanges must close before it is scored.

        If a session has more exchanges than the threshold, each further exchange that closes causes the oldest
        waiting one to be scored. If the window is full, each further exchange pushes the oldest one out of it, and an
        exchange that is pushed out is scored too.
        """
        turns: dict[int, int] = {}
        waiting, window = deque(session.pending), deque(session.window)
        closed = 0
        while waiting:
            closed += 1
            while window and len(window) + closed > self._memory.capacity:
                if window.popleft() == waiting[0]:
                    turns[waiting.popleft()] = closed
                    if not waiting:
                        return turns
            if waiting and self._promoter.rolls(session.exchanges + closed):
                turns[waiting.popleft()] = closed
        return turns

    def _until(self, waits: Waits) -> str:
        more = "one more exchange has" if waits.exchanges == 1 else f"{waits.exchanges} more exchanges have"
        silence = lasting(self._memory.session_idle_seconds)
        return f"It is scored when {more} closed, the session ends ({silence} of silence end it), or it expires."

    def _closing(self, exchange: Exchange) -> str:
        """Return a sentence that says what closes the open exchange."""
        said, gap = exchange.messages, lasting(self._memory.exchange_gap_seconds)
        if len(said) >= self._memory.exchange_messages:
            message = "the next message"
        elif any(message.role is Role.ASSISTANT for message in said):
            message = "the user's next message"
        else:
            message = "the user's next message after an answer"
        return f"It closes with {message}, after {gap} of silence, or with the session."


_NOBODY_ASKS = "It waits for a value from a model, but the settings no longer name one: it waits until they do."


def _undecided(session: Session, exchange: Exchange) -> Status | None:
    """Return the status of an exchange that is not decided yet; None if it is decided, or needs no decision."""
    if session.open and exchange.seq == session.next:
        return Status.OPEN
    if exchange.seq in session.asked:
        return Status.ASKED
    return Status.WAITING if exchange.seq in session.pending else None
