"""What the rules of promotion ask, and what they answer."""

from __future__ import annotations

from typing import Protocol

import msgspec

from schemas.events import Parts
from schemas.exchanges import Exchange


class Estimator(Protocol):
    """Says what an exchange is worth remembering, 0-10."""

    def __call__(self, user: str, assistant: str) -> int: ...


class Decision(msgspec.Struct, frozen=True, gc=False):
    """What became of an exchange, and why. `importance` is 70-100 where it is kept, else 0."""

    exchange: Exchange
    kept: bool
    importance: int
    parts: Parts
    pinned: bool = False
    #: What of the exchange was weighed and is kept, where that is not all of it.
    heard: Exchange | None = None


class RatingNeeded(msgspec.Struct, frozen=True, gc=False):
    """The exchange's rating decides, and a model has to be asked for it: see `Promoter.rated`."""

    exchange: Exchange
