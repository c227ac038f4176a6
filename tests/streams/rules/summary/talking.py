"""Days of talk, and toy embeddings of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from schemas.messages import ChatMessage
from schemas.settings import MemorySettings
from schemas.summaries import Summary
from streams.rules.exchanges import Limits
from streams.rules.summary import Turn, extracted, turns_of
from streams.rules.summary.clustering import Embed, Vectors
from tests.making import axis, message

LIMITS = Limits.of(MemorySettings())


def day(*lines: str) -> list[ChatMessage]:
    """What is said, half a minute apart: by the assistant after "A: ", else by the user. Ids are m0, m1, …"""
    return [
        message(i, "assistant" if line.startswith("A: ") else "user", line.removeprefix("A: "), at=30 * i)
        for i, line in enumerate(lines)
    ]


def turns(*lines: str) -> list[Turn]:
    return turns_of(day(*lines), LIMITS)


def summary(*lines: str, embed: Embed | None = None) -> Summary:
    """The summary of such a day; to the embedding all is the same unless another one is given."""
    return extracted(turns(*lines), embed or about())


def about(*words: str) -> Embed:
    """An embedding with an axis for each of the words: a text lies along the first one that it holds, or the last."""

    def embed(texts: Sequence[str]) -> Vectors:
        places = [next((i for i, word in enumerate(words) if word in text), len(words)) for text in texts]
        return np.stack([axis(place, len(words) + 1) for place in places])

    return embed
