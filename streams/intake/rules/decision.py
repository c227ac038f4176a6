"""Types of the promotion rules: the interface of the rating estimator, and the results of the rules."""

from __future__ import annotations

from typing import Protocol

import msgspec

from schemas.events import Parts
from schemas.exchanges import Exchange


class Estimator(Protocol):
    """A function that rates an exchange from 0 (not worth remembering) to 10, by its user and assistant texts."""

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
    """The rules' result if the decision needs a model's rating. With the rating, `Promoter.rated` decides."""

    exchange: Exchange
