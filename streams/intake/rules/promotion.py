"""Promotion rules: whether an exchange enters long-term memory, and with what importance.

A closed exchange is evaluated at the first of these events:

    forced    it closes, and the user asked to remember it: it is kept
    rolling   an exchange closes, the session has more than `promote_threshold` exchanges, and this exchange is the
              oldest that is not evaluated: it is scored
    leaving   it leaves the window, by the session's end, capacity or expiry: it is scored
"""

from __future__ import annotations

from functools import lru_cache

from schemas.events import Parts
from schemas.exchanges import Exchange
from schemas.settings import MemorySettings
from streams.intake.rules.decision import Decision, Estimator, RatingNeeded
from streams.intake.rules.scoring import FULLNESS, KEEP_ABOVE, RATING, Local, Scorer
from streams.language.estimator import unread

#: The lowest rating that policy `llm` keeps.
KEEP_RATING = 7

#: The lowest importance of a kept exchange.
LEAST_IMPORTANCE = 70

#: The reason of exchanges that are kept because the local estimator cannot read their language.
UNREAD = "unread"


class Promoter:
    """Decides on exchanges by the policy of the settings. A rating is requested only if it can change the decision.

    If a rating is needed, the `estimator` computes it. Without an estimator, the result is then a `RatingNeeded`
    instead of a decision.
    """

    def __init__(self, memory: MemorySettings, estimator: Estimator | None) -> None:
        self._scorer = Scorer(memory)
        self._estimator = estimator
        self._pins_requests = memory.pin_requests
        self.policy = memory.scoring.policy
        self.threshold = memory.promote_threshold

    def at_close(self, exchange: Exchange) -> Decision | RatingNeeded | None:
        """Decide on an exchange that closes, if the user asked to remember it or the policy is `all`.

        Otherwise return None, because the exchange is scored later.
        """
        if self._scorer.asks_to_remember(exchange):
            return Decision(exchange, True, 100, Parts(total=1000, reason="forced"), self._pins_requests)
        if self.policy == "all":
            return self._by_rating(exchange, _WHOLE)
        return None

    def rolls(self, exchanges_in_session: int) -> bool:
        """True if the session is long enough for its oldest unevaluated exchange to be scored."""
        return exchanges_in_session > self.threshold

    def score(self, exchange: Exchange, exchanges_in_session: int, *, leaving: bool) -> Decision | RatingNeeded:
        """Decide on an exchange because the session has too many exchanges, or because this one leaves the window."""
        if self.policy != "weighted":
            return self._by_rating(exchange, _WHOLE)
        local = self._scorer.local(exchange, exchanges_in_session, leaving=leaving)
        if local.total > KEEP_ABOVE:
            return _weighted(exchange, local, None, "high_score")
        if local.total + RATING <= KEEP_ABOVE:
            return _weighted(exchange, local, None, "low_score")
        return self._by_rating(exchange, local)

    def rated(self, exchange: Exchange, rating: int | None) -> Decision:
        """Decide on an exchange whose rating was requested.

        `rating` is None if the model gave none; that counts as 0. A rating is requested only when `fullness` is at
        its maximum, so the maximum is used here.
        """
        local = self._scorer.local(exchange, 0, leaving=True) if self.policy == "weighted" else _WHOLE
        return self._decided(exchange, local, rating)

    def rating_of(self, exchange: Exchange) -> int | None:
        """Return the estimator's rating; None if there is no estimator."""
        return None if self._estimator is None else self._estimator(*exchange.said())

    def heard(self, exchange: Exchange) -> Exchange:
        """Return the part of an exchange that is scored and rated. Subclasses may leave out messages."""
        return exchange

    def _by_rating(self, exchange: Exchange, local: Local) -> Decision | RatingNeeded:
        rating = self.rating_of(exchange)
        if rating is None:
            return RatingNeeded(exchange)
        if self.policy != "all" and unread(exchange.said()[0]):
            return Decision(exchange, True, LEAST_IMPORTANCE, _unread(local))
        return self._decided(exchange, local, rating)

    def _decided(self, exchange: Exchange, local: Local, rating: int | None) -> Decision:
        worth = rating or 0
        if self.policy == "all":
            return Decision(exchange, True, 70 + 3 * worth, Parts(value=rating, total=1000, reason="all"))
        kept = worth >= KEEP_RATING if self.policy == "llm" else local.total + RATING * worth // 10 > KEEP_ABOVE
        reason = "unrated" if rating is None else "judged_important" if kept else "judged_unimportant"
        if self.policy == "llm":
            importance = min(100, max(70, 10 * worth)) if kept else 0
            return Decision(exchange, kept, importance, Parts(value=rating, total=100 * worth, reason=reason))
        return _weighted(exchange, local, rating, reason)


def _unread(local: Local) -> Parts:
    """Return the parts of the score of a text in a language that the local estimator cannot read.

    The parts have no rating, because the estimator's 0 does not mean that the text is unimportant.
    """
    return Parts(UNREAD, local.fullness, local.sentiment, local.content, total=local.total)


#: The local score under the policies `all` and `llm`, which ignore it.
_WHOLE = Local(0, 0, 0)


def _weighted(exchange: Exchange, local: Local, rating: int | None, reason: str) -> Decision:
    return Decision(exchange, *_weight(local, rating, reason))


@lru_cache(maxsize=1_024)
def _weight(local: Local, rating: int | None, reason: str) -> tuple[bool, int, Parts]:
    """Return whether the exchange is kept, its importance, and the parts. Cached, because few inputs are distinct.

    The importance of a kept exchange is 70 + 30 × (total − 0.5)/0.3, rounded half up and clamped to 70-100.
    """
    total = local.total + RATING * (rating or 0) // 10
    parts = Parts(
        fullness=local.fullness,
        sentiment=local.sentiment,
        content=local.content,
        value=rating,
        total=total,
        reason=reason,
    )
    if total <= KEEP_ABOVE:
        return False, 0, parts
    importance = (2 * 30 * (total - KEEP_ABOVE) + FULLNESS) // (2 * FULLNESS)
    return True, 70 + max(0, min(30, importance)), parts
