"""A cache of the vectors of the last texts, because people and agents repeat their questions."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Final

import numpy as np

from streams.models.embedding.embedders import Vectors
from tables.search.recent import Recent

#: Maximum bytes of the cache: 3,600 vectors of 512 numbers.
MOST_BYTES: Final = 8_000_000
#: Bytes of an entry besides its numbers: key, array and place in the dictionary.
_ENTRY_BYTES: Final = 300


class QuestionVectors:
    """A cache of the vectors, float32[d], of the last questions.

    All vectors are of the same model. Keys are hashes of the questions, whose texts are not kept.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._recent = Recent(most_bytes)

    def of(self, texts: Sequence[str]) -> Vectors | None:
        """Return the vectors of all texts as a new array, float32[n, d]; None if one of them is not cached."""
        known = [vector for vector in self.known(texts) if vector is not None]
        return np.stack(known) if known and len(known) == len(texts) else None

    def known(self, texts: Sequence[str]) -> list[Vectors | None]:
        """Return the vector of each text, None if it is not cached. Do not change the vectors."""
        return [self._recent.get(_key(text)) for text in texts]

    def keep(self, texts: Sequence[str], vectors: Vectors) -> None:
        """Cache the vectors, except vectors of zeros: these texts were not embedded, and are tried again later."""
        for text, vector in zip(texts, vectors, strict=True):
            if vector.any():  # a copy, because a view of one row would keep the whole array in memory
                self._recent.put(_key(text), vector.copy(), vector.nbytes + _ENTRY_BYTES)


def _key(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
