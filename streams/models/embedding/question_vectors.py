"""A cache of the last texts' vectors, in bounded memory: people and agents repeat their questions."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Final

import numpy as np

from streams.models.embedding.embedders import Vectors
from tables.search.recent import Recent

#: 3,600 questions of 512 numbers.
MOST_BYTES: Final = 8_000_000
#: Bytes of an entry besides its numbers: key, array and place in the dictionary.
_ENTRY_BYTES: Final = 300


class QuestionVectors:
    """The vector, float32[d], of each question, until newer ones need its place.

    All belong to one model. Keys are hashes: the questions are not kept.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._recent = Recent(most_bytes)

    def of(self, texts: Sequence[str]) -> Vectors | None:
        """Return float32[n, d], a copy for the caller, if all are cached; else None."""
        known = [vector for vector in self.known(texts) if vector is not None]
        return np.stack(known) if known and len(known) == len(texts) else None

    def known(self, texts: Sequence[str]) -> list[Vectors | None]:
        """Return the vector of each text, None if it is not cached. Do not change the vectors."""
        return [self._recent.get(_key(text)) for text in texts]

    def keep(self, texts: Sequence[str], vectors: Vectors) -> None:
        """Cache the vectors, except zeros: they mean that a text was not embedded, which can change."""
        for text, vector in zip(texts, vectors, strict=True):
            if vector.any():  # a copy, because a row of an array would keep all of it
                self._recent.put(_key(text), vector.copy(), vector.nbytes + _ENTRY_BYTES)


def _key(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
