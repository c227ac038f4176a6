"""A cache of the vectors of the last embedded questions, because people and agents repeat their questions."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Final

import numpy as np

from streams.models.embedding.embedders import Vectors
from tables.search.recent import Recent

#: Maximum bytes of the cache. This is enough for 3,600 vectors of 512 numbers.
MOST_BYTES: Final = 8_000_000
#: Bytes of a cache entry in addition to its vector's numbers: key, array object and dictionary slot.
_ENTRY_BYTES: Final = 300


class QuestionVectors:
    """A cache of the vectors, float32[d], of the last questions.

    All vectors must be of the same model. The keys are hashes of the questions; their texts are not stored.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._recent = Recent(most_bytes)

    def of(self, texts: Sequence[str]) -> Vectors | None:
        """Return the vectors of all texts as a new array, float32[n, d]; None if one of them is not cached."""
        known = [vector for vector in self.known(texts) if vector is not None]
        return np.stack(known) if known and len(known) == len(texts) else None

    def known(self, texts: Sequence[str]) -> list[Vectors | None]:
        """Return for each text its cached vector, or None if it is not cached. Do not change the returned vectors."""
        return [self._recent.get(_key(text)) for text in texts]

    def keep(self, texts: Sequence[str], vectors: Vectors) -> None:
        """Cache the vectors of texts. Zero vectors are left out, because their texts could not be embedded now."""
        for text, vector in zip(texts, vectors, strict=True):
            if vector.any():  # copied below, because a view of one row would keep the whole array in memory
                self._recent.put(_key(text), vector.copy(), vector.nbytes + _ENTRY_BYTES)


def _key(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
