"""Whether an exchange goes on into long-term memory, and with what importance.

In this order, for an exchange that closed: forced (the user asked to remember it), rolling (more than
`promote_threshold` exchanges in the session: the oldest unevaluated one is scored), leaving (session end,
capacity, expiry: scored).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from schemas.events import Parts
from schemas.messages import Exchange
from schemas.settings import MemorySettings
from streams.rules.scoring import FULLNESS, KEEP_ABOVE, VALUE, Local, Scorer


class Judge(Protocol):
    """Says what an exchange is worth remembering, 0-10."""

    def __call__(self, user: str, assistant: str) -> int: ...


@dataclass(frozen=True, slots=True)
class Decision:
    """What became of an exchange, and why. `importance` is 70-100 where it is kept, else 0."""

    exchange: Exchange
    kept: bool
    importance: int
    parts: Parts


class Promoter:
    """Decides by the settings' policy; asks the judge only where its answer can decide."""

    def __init__(self, memory: MemorySettings, judge: Judge) -> None:
        self._scorer = Scorer(memory)
        self._judge = judge
        self.policy = memory.scoring.policy
        self.threshold = memory.promote_threshold

    def at_close(self, exchange: Exchange) -> Decision | None:
        """The decision that an exchange's closing brings by itself: forced, or policy `all`; else None."""
        if self._scorer.asks_to_remember(exchange):
            return Decision(exchange, True, 100, Parts(total=1000, reason="forced"))
        if self.policy == "all":
            value = self._value(exchange)
            return Decision(exchange, True, 70 + 3 * value, Parts(value=value, total=1000, reason="all"))
        return None

    def rolls(self, exchanges_in_session: int) -> bool:
        """Whether the session is long enough for its oldest unevaluated exchange to be scored."""
        return exchanges_in_session > self.threshold

    def score(self, exchange: Exchange, exchanges_in_session: int, *, leaving: bool) -> Decision:
        """Policy `weighted`."""
        local = self._scorer.local(exchange, exchanges_in_session, leaving=leaving)
        if local.total > KEEP_ABOVE:
            return _decision(exchange, local, None, "high_score")
        if local.total + VALUE <= KEEP_ABOVE:
            return _decision(exchange, local, None, "low_score")
        value = self._value(exchange)
        important = local.total + VALUE * value // 10 > KEEP_ABOVE
        return _decision(exchange, local, value, "judged_important" if important else "judged_unimportant")

    def _value(self, exchange: Exchange) -> int:
        return self._judge(*exchange.said())


def _decision(exchange: Exchange, local: Local, value: int | None, reason: str) -> Decision:
    """Importance 70 + 30 × (total − 0.5)/0.3 of what is kept, rounded half up and clamped to 70-100."""
    total = local.total + VALUE * (value or 0) // 10
    parts = Parts(
        fullness=local.fullness,
        sentiment=local.sentiment,
        content=local.content,
        value=value,
        total=total,
        reason=reason,
    )
    if total <= KEEP_ABOVE:
        return Decision(exchange, False, 0, parts)
    importance = (2 * 30 * (total - KEEP_ABOVE) + FULLNESS) // (2 * FULLNESS)
    return Decision(exchange, True, 70 + max(0, min(30, importance)), parts)
