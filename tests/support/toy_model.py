"""A model for workers whose retrieval is not what a test is about: no process, no weights, and no time to speak of.

A text's vector is the sum of its words' vectors, so texts that share words are near each other, and others are not.
A word is a run of letters and digits; a run of Chinese, Japanese or Korean is its pairs of characters.
"""

from __future__ import annotations

import functools
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final
from unittest.mock import patch

import numpy as np

from schemas.settings import EmbeddingSettings
from streams.models.embedding import embedding
from streams.models.embedding.embedders import Model, Side, UseEmbedder, Vectors, unit
from streams.models.embedding.process import EmbeddingProcess

#: It is recorded as the model in whose place it stands: a test's settings say nothing of it.
MODEL: Final = Model(UseEmbedder.name, UseEmbedder.dimension)
_WORD: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+|\w+")
_PAIRED: Final = "\u3040"


class ToyBackend:
    """In the place of an `EmbeddingProcess`."""

    simultaneous = 2

    async def load(self) -> Model:
        return MODEL

    async def embed(self, texts: Sequence[str], of: Side, attempt: int, *, urgent: bool) -> Vectors:
        return unit([_vector(text) for text in texts])

    async def close(self) -> None:
        """There is nothing to let go of."""


def toy_in_place_of_use(settings: EmbeddingSettings) -> ToyBackend | EmbeddingProcess:
    return ToyBackend() if settings.backend == "use" else EmbeddingProcess(settings)


@contextmanager
def toy() -> Iterator[None]:
    """Within the block, every worker of this process whose model is `use` has the toy."""
    with patch.object(embedding, "EmbeddingProcess", toy_in_place_of_use):
        yield


def _vector(text: str) -> Vectors:
    return np.asarray(sum(_word_vector(word) for word in words(text)) + np.zeros(MODEL.dimension), np.float32)


def words(text: str) -> list[str]:
    """
    >>> words("She's in Oslo. 我住在")
    ['she', 's', 'in', 'oslo', '我住', '住在']
    """
    found = []
    for run in _WORD.findall(text.casefold()):
        if run[0] >= _PAIRED and len(run) > 1:
            found += [run[at : at + 2] for at in range(len(run) - 1)]
        else:
            found.append(run)
    return found


@functools.lru_cache(maxsize=10_000)
def _word_vector(word: str) -> Vectors:
    """The same in every process and at any time."""
    chance = np.random.default_rng(zlib.crc32(word.encode(errors="replace")))
    return chance.normal(size=MODEL.dimension).astype(np.float32)
