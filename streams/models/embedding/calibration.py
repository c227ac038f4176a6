"""Calibration: the cosines that a model gives to unrelated texts, measured when it is loaded.

Sample questions are compared with sample memories, none of which answers them, in English and in Chinese. With 20
texts a language the result is within one spread of that of thousands of real memories (benchmarks/README.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import orjson

from tables.search.tokens import has_cjk

_SAMPLES = Path(__file__).parent.parent.parent / "samples" / "unrelated.json"


@dataclass(frozen=True, slots=True)
class Scale:
    """The usual scores of unrelated memories: their centre, and how widely they vary.

    ``centre`` is the median score of a query with memories that do not answer it; ``spread`` the standard deviation
    over one user's memories; ``least`` the smallest spread that is used.
    """

    centre: float
    spread: float
    least: float

    def deviations(self, scores: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
        """Return scores as deviations from ``centre``, along the last axis (the memories of one user)."""
        exact = scores.astype(np.float64)
        n = exact.shape[-1]
        variance = exact.var(axis=-1, keepdims=True) if n else np.zeros((*exact.shape[:-1], 1))
        pooled = (n * variance + PRIOR_SCORES * self.spread**2) / (n + PRIOR_SCORES)
        deviations: npt.NDArray[np.float64] = (exact - self.centre) / np.maximum(np.sqrt(pooled), self.least)
        return deviations


PRIOR_SCORES: Final = 20
"""The usual spread counts as much as so many memories: with fewer, a user's own spread says little."""

COSINE: Final = Scale(centre=0.08, spread=0.08, least=0.04)
"""Of the ``use`` embeddings; another model needs its own centre (e5's, say, is about 0.75)."""

LEAST_SPREAD: Final = 0.01


def scale_of(unrelated: npt.NDArray[np.float32]) -> Scale:
    """Return a model's scale, from the cosines ``[questions, memories]`` of unrelated texts."""
    spread = max(LEAST_SPREAD, float(unrelated.std(axis=1).mean()))
    return Scale(centre=float(np.median(unrelated)), spread=spread, least=spread / 2)


@dataclass(frozen=True, slots=True)
class Scales:
    """A model's scales by the script of the question.

    A model sees all texts of an unknown language as similar: unrelated Chinese texts have a cosine of 0.6 in an
    English model, and unrelated English ones 0.1.
    """

    latin: Scale
    cjk: Scale

    def of(self, query: str) -> Scale:
        """Return the scale for a question; with both scripts in it, that of Chinese, Japanese and Korean."""
        return self.cjk if has_cjk(query) else self.latin


COSINES: Final = Scales(latin=COSINE, cjk=COSINE)


def samples() -> list[str]:
    """Return the texts to embed."""
    return [text for sample in _read().values() for kind in ("questions", "memories") for text in sample[kind]]


def scales(vectors: npt.NDArray[np.float32]) -> Scales:
    """Return the scales of the model that made these unit vectors, float32[n, d], of `samples()`."""
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
