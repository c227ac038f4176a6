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
        self._keywords = Phrases(memory.scoring.content_keywords)
        self._phrases = Phrases(memory.force_phrases)

    def asks_to_remember(self, exchange: Exchange) -> bool:
        """Whether the user's text contains a remember phrase."""
        return self._phrases.found_in(exchange.said_by(Role.USER))

    def local(self, exchange: Exchange, exchanges_in_session: int, *, leaving: bool) -> Parts:
        """The parts that need no judge; `reason` is still empty."""
        fullness = FULLNESS if leaving else FULLNESS * min(exchanges_in_session, self._threshold) // self._threshold
        strong = any(emotion.casefold() in self._strong for emotion in exchange.emotions())
        said = f"{exchange.said_by(Role.USER)}\n{exchange.said_by(Role.ASSISTANT)}"
        sentiment = SENTIMENT if strong else 0
        content = CONTENT if self._keywords.found_in(said) else 0
        return Parts(
            fullness=fullness,
            sentiment=sentiment,
            content=content,
            total=fullness + sentiment + content,
            reason="",
        )


class Phrases:
    """Finds any of some phrases, whatever their case; Latin ones as whole words: "like" is not in "likely".

    >>> Phrases(["like"]).found_in("I LIKE tea"), Phrases(["like"]).found_in("unlikely")
    (True, False)
    """

    def __init__(self, phrases: Iterable[str]) -> None:
        wanted = sorted({phrase.strip().lower() for phrase in phrases if phrase.strip()}, key=len, reverse=True)
        #: Most texts hold none of these; looking for a plain text is a tenth of the pattern's work.
        self._first_words = tuple(_WORD.split(phrase)[0] or phrase for phrase in wanted)
        self._pattern = re.compile("|".join(map(_alternative, wanted)) or r"(?!)", re.IGNORECASE)

    def found_in(self, text: str) -> bool:
        lowered = text.lower()
        return any(word in lowered for word in self._first_words) and self._pattern.search(text) is not None


_WORD = re.compile(r"[\s'’]+")


def _alternative(phrase: str) -> str:
    text = re.sub(r"(?:\\ )+", r"\\s+", re.escape(phrase)).replace("'", "['’]")
    before = r"(?<![A-Za-z0-9])" if phrase[0].isascii() else ""
    after = r"(?:s|d|ed|es)?(?![A-Za-z0-9])" if phrase[-1].isascii() else ""
    return f"{before}{text}{after}"
