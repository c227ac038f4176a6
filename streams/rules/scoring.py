"""What an exchange weighs: fullness, sentiment and content, in integer thousandths.

    fullness  = 300 × min(1, exchanges in session / promote_threshold)      300 when the exchange is leaving
    sentiment = 200 if the emotion is a strong one
    content   = 200 if a content keyword occurs
    value     = 10 × the judge's 0-10, asked only where it can decide

Integers, because 0.3 + 0.2 must be exactly the border.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from schemas.events import Parts
from schemas.messages import Exchange, Role
from schemas.settings import MemorySettings

FULLNESS, SENTIMENT, CONTENT = 300, 200, 200
KEEP_ABOVE = 500
#: What the judge can add at the most.
VALUE = 100


class Scorer:
    """The local parts of an exchange's score, with the phrases of the settings compiled once."""

    def __init__(self, memory: MemorySettings) -> None:
        self._threshold = max(1, memory.promote_threshold)
        self._strong = frozenset(emotion.casefold() for emotion in memory.scoring.strong_emotions)
        self._keywords = any_of(memory.scoring.content_keywords)
        self._phrases = any_of(memory.force_phrases)

    def asks_to_remember(self, exchange: Exchange) -> bool:
        """Whether the user's text contains a remember phrase."""
        return self._phrases.search(exchange.said_by(Role.USER)) is not None

    def local(self, exchange: Exchange, exchanges_in_session: int, *, leaving: bool) -> Parts:
        """The parts that need no judge; `reason` is still empty."""
        fullness = FULLNESS if leaving else FULLNESS * min(exchanges_in_session, self._threshold) // self._threshold
        strong = any(emotion.casefold() in self._strong for emotion in exchange.emotions())
        said = f"{exchange.said_by(Role.USER)}\n{exchange.said_by(Role.ASSISTANT)}"
        sentiment = SENTIMENT if strong else 0
        content = CONTENT if self._keywords.search(said) else 0
        return Parts(
            fullness=fullness,
            sentiment=sentiment,
            content=content,
            total=fullness + sentiment + content,
            reason="",
        )


def any_of(phrases: Iterable[str]) -> re.Pattern[str]:
    """Finds any of the phrases, whatever their case; Latin ones as whole words, so that "like" is not "likely".

    >>> bool(any_of(["like"]).search("I LIKE tea")), bool(any_of(["like"]).search("unlikely"))
    (True, False)
    """
    alternatives = []
    for phrase in sorted(phrases, key=len, reverse=True):
        text = re.escape(phrase.strip()).replace(r"\ ", r"\s+").replace("'", "['’]")
        if not text:
            continue
        before = r"(?<![A-Za-z0-9])" if phrase[:1].isascii() else ""
        after = r"(?:s|d|ed|es)?(?![A-Za-z0-9])" if phrase[-1:].isascii() else ""
        alternatives.append(f"{before}{text}{after}")
    return re.compile("|".join(alternatives) or r"(?!)", re.IGNORECASE)
