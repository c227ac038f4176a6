"""Score of an exchange: fullness, sentiment and content, in integer thousandths.

    fullness  = 300 × min(1, exchanges in session / promote_threshold)      300 when the exchange is leaving
    sentiment = 200 if one of the user's emotions is a strong one
    content   = 200 if a content keyword occurs, or the local estimator rates it at least `content_value`, or the
                estimator cannot read the language of the user's words
    value     = 10 × the rating, 0-10, which is requested only if it can change the decision

The numbers are integers, because 0.3 + 0.2 must be exactly the limit of 0.5.
"""

from __future__ import annotations

from typing import NamedTuple

from schemas.conversations import Role
from schemas.exchanges import Exchange
from schemas.settings import MemorySettings
from streams.language.asking import TO_REMEMBER
from streams.language.estimator import estimated_rating, unread
from streams.language.phrases import Phrases

FULLNESS, SENTIMENT, CONTENT = 300, 200, 200
KEEP_ABOVE = 500
#: The maximum that a rating can add to the score, in thousandths.
RATING = 100


class Local(NamedTuple):
    """The parts of a score that need no rating, in thousandths."""

    fullness: int
    sentiment: int
    content: int

    @property
    def total(self) -> int:
        return self.fullness + self.sentiment + self.content


class Scorer:
    """Computes the local parts of an exchange's score. The phrases of the settings are compiled only once."""

    def __init__(self, memory: MemorySettings) -> None:
        self._threshold = max(1, memory.promote_threshold)
        self._strong = frozenset(emotion.casefold() for emotion in memory.scoring.strong_emotions)
        self._keywords = Phrases(memory.scoring.content_keywords)
        self._content_value = memory.scoring.content_value
        self._phrases = Phrases(memory.force_phrases, TO_REMEMBER)

    def asks_to_remember(self, exchange: Exchange) -> bool:
        """True if the user's text asks to remember something: a remember phrase occurs in it as a request."""
        return self._phrases.found_in(exchange.said()[0])

    def local(self, exchange: Exchange, exchanges_in_session: int, *, leaving: bool) -> Local:
        """Return the parts of the exchange's score that need no rating."""
        threshold = self._threshold
        full = leaving or exchanges_in_session >= threshold
        return Local(
            FULLNESS if full else FULLNESS * exchanges_in_session // threshold,
            SENTIMENT if self._moved(exchange) else 0,
            CONTENT if self._is_content(exchange) else 0,
        )

    def _is_content(self, exchange: Exchange) -> bool:
        """True if the exchange has a content keyword, is rated as personal, or may be personal.

        It may be personal if the language of the user's text cannot be read.
        """
        user, assistant = exchange.said()
        if self._keywords.found_in(f"{user}\n{assistant}"):
            return True
        return estimated_rating(user, assistant) >= self._content_value or unread(user)

    def _moved(self, exchange: Exchange) -> bool:
        """True if one of the user's emotions is a strong one; an assistant's emotions do not count."""
        for message in exchange.messages:
            if message.emotion and message.role is Role.USER and message.emotion.casefold() in self._strong:
                return True
        return False
