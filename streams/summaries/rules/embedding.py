"""Embeds the texts of a day by the Universal Sentence Encoder, if the extra `embedded` is installed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

TOGETHER: Final = 512
"""The number of texts that are embedded at a time."""

Floats = NDArray[np.float32]
Embed = Callable[[Sequence[str]], Floats]


class Remembered:
    """Embeds texts, each of them once: float32[texts, 512]. Half characters are replaced."""

    def __init__(self, embed: Embed) -> None:
        self._embed = embed
        self._vectors: dict[str, Floats] = {}

    def __call__(self, texts: Sequence[str]) -> Floats:
        new = [text for text in dict.fromkeys(texts) if text not in self._vectors]
        for start in range(0, len(new), TOGETHER):
            some = new[start : start + TOGETHER]
            vectors = self._embed([text.encode("utf-8", "replace").decode() for text in some])
            self._vectors.update(zip(some, vectors, strict=True))
        return np.array([self._vectors[text] for text in texts], np.float32)


@lru_cache(maxsize=1)
def encoder() -> Embed | None:
    """Return the function that embeds texts, or None if the extra `embedded` is not installed."""
    from streams.models.embedding.use_model import UseModel

    try:
        return UseModel().encode
    except ImportError:
        return None
