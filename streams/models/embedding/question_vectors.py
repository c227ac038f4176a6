"""The vectors of what was asked, or looked through, last, in bounded memory: people and agents ask again."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Final

import numpy as np

from streams.models.embedding.embedders import Vectors
from tables.search.recent import Recent

#: 3,600 questions of 512 numbers.
MOST_BYTES: Final = 8_000_000
#: What an entry takes besides its numbers: key, array and place in the dictionary.
_ENTRY_BYTES: Final = 300


class QuestionVectors:
    """For each question its vector, float32[d], until later ones need its place.

    They belong to one model. Keys are hashes: what was asked is not kept.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._recent = Recent(most_bytes)

    def of(self, texts: Sequence[str]) -> Vectors | None:
        """float32[n, d], the caller's own, where all are known."""
        known = [vector for vector in self.known(texts) if vector is not None]
        return np.stack(known) if known and len(known) == len(texts) else None

    def known(self, texts: Sequence[str]) -> list[Vectors | None]:
        """The vector of each text, None where it is not, or no longer, kept. They are not to be changed."""
        return [self._recent.get(_key(text)) for text in texts]

    def keep(self, texts: Sequence[str], vectors: Vectors) -> None:
        """Vectors of zeros say that nothing was made of a text, which can change."""
        for text, vector in zip(texts, vectors, strict=True):
            if vector.any():  # a copy, because a row of an array would keep all of it
                self._recent.put(_key(text), vector.copy(), vector.nbytes + _ENTRY_BYTES)


def _key(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
