"""Promotion with `memory.excluded_sources`: messages of these sources are neither scored nor kept.

An exchange in which only excluded sources have spoken is dropped. The memory of any other exchange has the same id as
without this setting, because the id is derived from all messages, including the excluded ones.
"""

from __future__ import annotations

from typing import Final, TypeVar

from msgspec.structs import replace

from schemas.events import Parts
from schemas.exchanges import Exchange
from schemas.settings import MemorySettings
from streams.intake.rules.decision import Decision, Estimator, RatingNeeded
from streams.intake.rules.promotion import Promoter

#: The reason in a decision that drops an exchange because of its sources.
EXCLUDED: Final = "excluded_source"

V = TypeVar("V", Decision, RatingNeeded, Decision | RatingNeeded, Decision | RatingNeeded | None)


def promoter_of(memory: MemorySettings, estimator: Estimator | None) -> Promoter:
    """Return the promoter for the settings. It ignores messages of excluded sources, if the settings name any."""
    return HeedingPromoter(memory, estimator) if memory.excluded_sources else Promoter(memory, estimator)


class HeedingPromoter(Promoter):
    """Decides on an exchange without its messages from excluded sources, by the rules of `Promoter`."""

    def __init__(self, memory: MemorySettings, estimator: Estimator | None) -> None:
        super().__init__(memory, estimator)
        self._excluded = memory.excluded_sources

    def heard(self, exchange: Exchange) -> Exchange:
        return exchange.without(self._excluded)

    def at_close(self, exchange: Exchange) -> Decision | RatingNeeded | None:
        heard = self.heard(exchange)
        return _of(exchange, heard, super().at_close(heard)) if heard.spoken else None

    def score(self, exchange: Exchange, exchanges_in_session: int, *, leaving: bool) -> Decision | RatingNeeded:
        heard = self.heard(exchange)
        if not heard.spoken:
            return _dropped(exchange)
        return _of(exchange, heard, super().score(heard, exchanges_in_session, leaving=leaving))

    def rated(self, exchange: Exchange, rating: int | None) -> Decision:
        heard = self.heard(exchange)
        return _of(exchange, heard, super().rated(heard, rating)) if heard.spoken else _dropped(exchange)

    def rating_of(self, exchange: Exchange) -> int | None:
        return super().rating_of(self.heard(exchange))


def _dropped(exchange: Exchange) -> Decision:
    return Decision(exchange, False, 0, Parts(reason=EXCLUDED))


def _of(exchange: Exchange, heard: Exchange, verdict: V) -> V:
    """Turn the verdict on `heard`, a part of `exchange`, into a verdict on the whole exchange."""
    if isinstance(verdict, Decision):
        return replace(verdict, exchange=exchange, heard=None if heard == exchange else heard)
    return verdict if verdict is None else replace(verdict, exchange=exchange)
