"""Importance of a text whose event states no importance, by the same analysis that promotion uses for exchanges.

    asks to be remembered                 100
    content: a keyword, or personal       70 + 3 × the local estimator's value, 0-10
    else                                  70 for a memory, which therefore starts active
                                          50 for a short-term memory, which therefore ends with its session

The local estimator is used even if a model rates exchanges: reading events must not wait for a network.
"""

from __future__ import annotations

from typing import Final

from schemas.conversations import Role
from schemas.events import LongTermEvent, Remember
from schemas.exchanges import Exchange, Message
from schemas.settings import MemorySettings
from streams.intake.rules.scoring import Scorer
from streams.language.estimator import estimated_rating

ASKED_FOR: Final = 100.0
LEAST: Final = 70.0
BY_VALUE: Final = 3.0
FOR_A_WHILE: Final = 50.0


class Importance:
    """Rates texts by the phrases, the keywords and the `content_value` of the settings."""

    def __init__(self, memory: MemorySettings) -> None:
        self._scorer = Scorer(memory)

    def of(self, text: str, *, short_term: bool) -> float:
        """Return the importance, 0-100. A short-term memory with at least 70 is kept after its session has ended."""
        said = Exchange(0, (Message("", Role.USER, text, 0),))
        if self._scorer.asks_to_remember(said):
            return ASKED_FOR
        if self._scorer.local(said, 0, leaving=True).content:
            return LEAST + BY_VALUE * estimated_rating(text, "")
        return FOR_A_WHILE if short_term else LEAST

    def weighed(self, event: LongTermEvent) -> LongTermEvent:
        """Return the event. A `Remember` that states no importance gets the importance of its text.

        Items are returned unchanged.
        """
        if isinstance(event, Remember) and event.kind != "item" and "importance" not in event.model_fields_set:
            importance = self.of(event.text, short_term=event.kind == "short_term")
            return event.model_copy(update={"importance": importance})
        return event
