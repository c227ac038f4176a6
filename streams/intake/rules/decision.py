"""Types of the promotion rules: the estimator that they ask, and their results."""

from __future__ import annotations

from typing import Protocol

import msgspec

from schemas.events import Parts
from schemas.exchanges import Exchange


class Estimator(Protocol):
    """A function that rates an exchange, given its two texts: 0-10, higher if it is more worth remembering."""

    def __call__(self, user: str, assistant: str) -> int: ...


class Decision(msgspec.Struct, frozen=True, gc=False):
    """A decision on an exchange, and its reasons. `importance` is 70-100 if the exchange is kept, else 0."""

    exchange: Exchange
    kept: bool
    importance: int
    parts: Parts
    pinned: bool = False
    #: The part of the exchange that was scored and is kept; None if it is the whole exchange.
    heard: Exchange | None = None


class RatingNeeded(msgspec.Struct, frozen=True, gc=False):
    """The result if the decision depends on a model's rating. `Promoter.rated` decides when the rating is known."""

    exchange: Exchange
