"""The vectors of the questions that were asked last, in bounded memory: people and agents ask again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from hashlib import blake2b
from typing import Final

import numpy as np

from streams.clients.embedders import Vectors

#: 3,600 questions of 512 numbers.
MOST_BYTES: Final = 8_000_000
#: What an entry takes besides its numbers: key, array and place in the dictionary.
_ENTRY_BYTES: Final = 300


class QuestionVectors:
    """For each question its vector, float32[d], until later ones need its place.

    They belong to one model. Keys are hashes: what was asked is not kept.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._vectors: OrderedDict[bytes, Vectors] = OrderedDict()
        #: What they take.
        self.bytes = 0

    def of(self, texts: Sequence[str]) -> Vectors | None:
        """float32[n, d], the caller's own, where all are known."""
        keys = [_key(text) for text in texts]
        if not keys or not all(key in self._vectors for key in keys):
            return None
        for key in keys:
            self._vectors.move_to_end(key)
        return np.stack([self._vectors[key] for key in keys])

    def keep(self, texts: Sequence[str], vectors: Vectors) -> None:
        """Vectors of zeros say that nothing was made of a text, which can change."""
        for text, vector in zip(texts, vectors, strict=True):
            if vector.any():
                key = _key(text)
                self._drop(key)
                self._vectors[key] = vector.copy()  # a row of an array would keep all of it
                self.bytes += vector.nbytes + _ENTRY_BYTES
        while self.bytes > self._most_bytes:
            self._drop(next(iter(self._vectors)))

    def _drop(self, key: bytes) -> None:
        if (vector := self._vectors.pop(key, None)) is not None:
            self.bytes -= vector.nbytes + _ENTRY_BYTES


def _key(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
