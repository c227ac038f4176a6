"""Evidence: the learned part of the local estimator, from a message's words and their n-grams of characters.

A linear model for each language, fitted by `benchmarks/estimator_training.py`: the evidence of a message is a sum of
coefficients. A few are for the message as a whole (`SHAPE`); the others are for hashed n-grams of characters. The
coefficients are data: `estimator_weights.bin`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final
from zlib import crc32

BUCKETS: Final = 8_192
"""How many coefficients a language's n-grams share; the index of an n-gram's is its CRC-32, modulo this."""

SHORTEST, LONGEST = 3, 5
"""Lengths of the n-grams of an English word, which is put between `<` and `>`; the whole word is one more."""

SMOOTHING: Final = 4
"""A sum over n words is divided by √(n + this): one word is little evidence, and length alone adds little."""

ROOTS: Final = tuple((SMOOTHING + words) ** -0.5 for words in range(2_010))
"""The inverse of that root, by the number of words."""

SIDES: Final = ("user", "reply")
SHAPE: Final = ("courtesies", "you", "opened")
"""The features of a message as a whole."""

MOST_COURTESIES, MOST_YOU = 8, 6
"""The most courtesies and "you" that count."""

FILE: Final = Path(__file__).with_name("estimator_weights.bin")


class Weights:
    """The coefficients of one language, in points: for the signals' points, for each side's shape, for n-grams."""

    def __init__(self, header: dict[str, Any], buckets: bytes) -> None:
        self.bias: Final = float(header["bias"])
        self.signals: Final = float(header["signals"])
        self.sides: Final = tuple(tuple(float(header[side][name]) for name in SHAPE) for side in SIDES)
        scale = float(header["scale"])
        self.of_bucket: Final = [scale * value for value in memoryview(buckets).cast("b")]

    def of(self, ngrams: Sequence[str]) -> float:
        """Return the sum of the n-grams' coefficients, divided by the root of their number."""
        of_bucket = self.of_bucket
        return sum([of_bucket[bucket(ngram)] for ngram in ngrams]) / len(ngrams) ** 0.5 if ngrams else 0.0


def bucket(ngram: str) -> int:
    """Return the index of an n-gram's coefficient.

    >>> 0 <= bucket("<my") < BUCKETS
    True
    """
    return crc32(ngram.encode("utf-8", "surrogatepass")) % BUCKETS


def loaded(data: bytes) -> dict[str, Weights]:
    """Read the languages of a weights file: a line of JSON, then each language's buckets, a signed byte each."""
    line, _, buckets = data.partition(b"\n")
    header = json.loads(line)
    return {
        language: Weights(values, buckets[place * BUCKETS : (place + 1) * BUCKETS])
        for place, (language, values) in enumerate(header.items())
    }


WEIGHTS: Final = loaded(FILE.read_bytes())
