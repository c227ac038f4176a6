"""Where a model's cosines lie for what does not belong together: measured when it is loaded.

Questions are compared with what a person might have said, none of which answers them, in English and in Chinese. On
20 texts a language it comes within one spread of what thousands of real memories give (benchmarks/README.md).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import orjson

from streams.rules.ranking import Scale, Scales, scale_of

_SAMPLES = Path(__file__).parent.parent / "samples" / "unrelated.json"


def samples() -> list[str]:
    """The texts to embed."""
    return [text for sample in _read().values() for kind in ("questions", "memories") for text in sample[kind]]


def scales(vectors: npt.NDArray[np.float32]) -> Scales:
    """The scales of the model that made these unit vectors, float32[n, d], of `samples()`."""
    found: dict[str, Scale] = {}
    start = 0
    for language, sample in _read().items():
        middle = start + len(sample["questions"])
        end = middle + len(sample["memories"])
        found[language] = scale_of(vectors[start:middle] @ vectors[middle:end].T)
        start = end
    return Scales(latin=found["en"], cjk=found["zh"])


def _read() -> dict[str, dict[str, list[str]]]:
    read: dict[str, dict[str, list[str]]] = orjson.loads(_SAMPLES.read_bytes())
    return read
