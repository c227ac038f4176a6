"""Evidence: the learned part of the local estimator. It uses a message's words and their character n-grams.

English and Chinese have a linear model, fitted by `benchmarks/estimator_training.py`: the evidence of a message is a
sum of coefficients. A few coefficients are for the message as a whole (`SHAPE`). All others are for hashed n-grams of
characters. The coefficients are in the file `estimator_weights.bin`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final
from zlib import crc32

BUCKETS: Final = 8_192
"""The number of coefficients that the n-grams of a language share.

The index of an n-gram's coefficient is the CRC-32 of the n-gram, modulo this number.
"""

SHORTEST, LONGEST = 3, 5
"""The minimum and the maximum length of an n-gram of an English word, in characters.

The n-grams are made of the word between `<` and `>`. The whole word is one more n-gram.
"""

SMOOTHING: Final = 4
"""The sum of the evidence of a message's n words is divided by √(n + `SMOOTHING`).

So a single word is weak evidence, and a long message does not get strong evidence from its length alone.
"""

ROOTS: Final = tuple((SMOOTHING + words) ** -0.5 for words in range(2_010))
"""The factor 1 / √(n + `SMOOTHING`), indexed by the number of words n."""

SIDES: Final = ("user", "reply")
SHAPE: Final = ("courtesies", "you", "opened", "asked")
"""The features of a message as a whole.

`opened` is true if the message is about a person's life or work, `asked` if it has only questions and requests.
"""

MOST_COURTESIES, MOST_YOU = 8, 6
"""The maximum number of courtesies in a message that count as evidence, and the same limit for the word "you"."""

FILE: Final = Path(__file__).with_name("estimator_weights.bin")


class Weights:
    """The coefficients of one language.

    `signals` is the weight of the signals' points. `sides` has the coefficients of the shape, for the user's words
    and for the reply. `of_bucket` has the coefficients of the n-grams. `bias`, `sides` and `of_bucket` are in points.
    """

    def __init__(self, header: dict[str, Any], buckets: bytes) -> None:
        self.bias: Final = float(header["bias"])
        self.signals: Final = float(header["signals"])
        self.sides: Final = tuple(tuple(float(header[side][name]) for name in SHAPE) for side in SIDES)
        scale = float(header["scale"])
        self.of_bucket: Final = [scale * value for value in memoryview(buckets).cast("b")]

    def of(self, ngrams: Sequence[str]) -> float:
        """Return the sum of the n-grams' coefficients, divided by the square root of the number of n-grams."""
        of_bucket = self.of_bucket
        return sum([of_bucket[bucket(ngram)] for ngram in ngrams]) / len(ngrams) ** 0.5 if ngrams else 0.0


def bucket(ngram: str) -> int:
    """Return the index of an n-gram's coefficient.

    >>> 0 <= bucket("<my") < BUCKETS
    True
    """
    return crc32(ngram.encode("utf-8", "surrogatepass")) % BUCKETS


def loaded(data: bytes) -> dict[str, Weights]:
    """Read a weights file, and return the weights by language.

    The file has a line of JSON, and then the buckets of each language. A bucket is a signed byte.
    """
    line, _, buckets = data.partition(b"\n")
    header = json.loads(line)
    return {
        language: Weights(values, buckets[place * BUCKETS : (place + 1) * BUCKETS])
        for place, (language, values) in enumerate(header.items())
    }


WEIGHTS: Final = loaded(FILE.read_bytes())
