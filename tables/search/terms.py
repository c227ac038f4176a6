"""The terms of texts as numbers: the input of BM25, small enough to be stored with each memory.

A term is one word of 64 bits: 44 bits of a hash of its token, then 20 bits of its count in the text. Two different
tokens have the same hash with a probability of 2^-44.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from tables.search.statements import statements
from tables.search.tokens import tokens, weight

Words = npt.NDArray[np.uint64]

#: The number of bits of a count. They are enough for the tokens of the largest text, 16 messages of 32 KiB each.
COUNT_BITS: Final = 20
MOST: Final = (1 << COUNT_BITS) - 1


@lru_cache(maxsize=65_536)
def hash_of(token: str) -> int:
    """Return a hash of a token, in the upper 44 of 64 bits. It is the same in every process."""
    digest = hashlib.blake2b(token.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little") & ~MOST


@lru_cache(maxsize=65_536)
def _weighed(token: str) -> tuple[int, float]:
    return hash_of(token), weight(token)


class Counted(NamedTuple):
    """A text's terms as words of 64 bits, in order of first use, and its length: the sum of its tokens' weights.

    `stated` are the words of its statements (`Statement.word`).
    """

    words: list[int]
    length: float
    stated: list[int]


def counted(text: str) -> Counted:
    """Return the terms of a text, and the length of the text.

    >>> [word & MOST for word in counted("cat cat bird").words], counted("the cat").length
    ([2, 1], 1.2)
    """
    words, length = [], 0.0
    for token, count in Counter(tokens(text)).items():
        hashed, weighs = _weighed(token)
        words.append(hashed | (count if count < MOST else MOST))
        length += count * weighs
    return Counted(words, length, [one.word for one in statements(text)])


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms of several texts: `words` uint64[m], text after text.

    `sizes` int64[n] is the number of terms of each text, `lengths` float32[n] its length.
    """

    words: Words
    sizes: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.float32]

    @classmethod
    def of(cls, texts: Iterable[str]) -> Self:
        return cls.joined([counted(text) for text in texts])

    @classmethod
    def joined(cls, several: Sequence[Counted]) -> Self:
        return cls(
            np.array([word for one in several for word in one.words], np.uint64),
            np.array([len(one.words) for one in several], np.int64),
            np.array([one.length for one in several], np.float32),
        )

    def __len__(self) -> int:
        return len(self.sizes)

    def with_more(self, other: Terms) -> Terms:
        """Return the terms of these texts, followed by the terms of the texts in `other`."""
        return Terms(
            np.concatenate([self.words, other.words]),
            np.concatenate([self.sizes, other.sizes]),
            np.concatenate([self.lengths, other.lengths]),
        )
