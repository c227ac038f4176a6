"""Calibration: measures, when an embedding model is loaded, which cosines it gives to unrelated texts.

Sample questions are compared with sample memories, in English and in Chinese. No sample memory answers a sample
question. With 20 texts per language, the result differs by less than one standard deviation from the result with
thousands of real memories (benchmarks/README.md).
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
    """The usual scores of memories that are unrelated to the query.

    ``centre`` is the median score of a query with memories that do not answer it. ``spread`` is the standard
    deviation of these scores over one user's memories. A spread that is smaller than ``least`` counts as ``least``.
    """

    centre: float
    spread: float
    least: float

    def deviations(self, scores: npt.NDArray[np.float32]) -> npt.NDArray[np.float64]:
        """Return each score's distance from ``centre``, divided by the spread over the user's memories.

        The last axis of `scores` stands for the memories of one user.
        """
        exact = scores.astype(np.float64)
        n = exact.shape[-1]
        variance = exact.var(axis=-1, keepdims=True) if n else np.zeros((*exact.shape[:-1], 1))
        pooled = (n * variance + PRIOR_SCORES * self.spread**2) / (n + PRIOR_SCORES)
        deviations: npt.NDArray[np.float64] = (exact - self.centre) / np.maximum(np.sqrt(pooled), self.least)
        return deviations


PRIOR_SCORES: Final = 20
"""The weight of `Scale.spread`, as a number of memories, when it is averaged with the spread over a user's memories.

The spread over a user's memories alone would be unreliable for a user with few memories.
"""

COSINE: Final = Scale(centre=0.08, spread=0.08, least=0.04)
"""The scale of the ``use`` model's cosines. Other models need other scales; for e5, the centre is about 0.75."""

LEAST_SPREAD: Final = 0.01


def scale_of(unrelated: npt.NDArray[np.float32]) -> Scale:
    """Return a model's scale, computed from the cosines ``[questions, memories]`` of unrelated texts."""
    spread = max(LEAST_SPREAD, float(unrelated.std(axis=1).mean()))
    return Scale(centre=float(np.median(unrelated)), spread=spread, least=spread / 2)


@dataclass(frozen=True, slots=True)
class Scales:
    """A model's scales, by the script of the question.

    A model gives high cosines to all texts in a language that it does not know. For example, an English model gives
    unrelated Chinese texts a cosine of 0.6, and unrelated English texts 0.1.
    """

    latin: Scale
    cjk: Scale

    def of(self, query: str) -> Scale:
        """Return the scale for a question: `cjk` if it contains any Chinese, Japanese or Korean, else `latin`."""
        return self.cjk if has_cjk(query) else self.latin


COSINES: Final = Scales(latin=COSINE, cjk=COSINE)


def questions() -> list[str]:
    """Return the sample questions of all languages. Their vectors are an argument of `scales`."""
    return [text for sample in _read().values() for text in sample["questions"]]


def documents() -> list[str]:
    """Return the sample memories of all languages. Their vectors are an argument of `scales`."""
    return [text for sample in _read().values() for text in sample["memories"]]


def scales(questions: npt.NDArray[np.float32], documents: npt.NDArray[np.float32]) -> Scales:
    """Compute a model's scales from its unit vectors of the texts `questions()` and `documents()`, float32[n, d]."""
    found: dict[str, Scale] = {}
    asked = told = 0
    for language, sample in _read().items():
        of_questions = questions[asked : (asked := asked + len(sample["questions"]))]
        of_documents = documents[told : (told := told + len(sample["memories"]))]
        found[language] = scale_of(of_questions @ of_documents.T)
    return Scales(latin=found["en"], cjk=found["zh"])


def _read() -> dict[str, dict[str, list[str]]]:
    read: dict[str, dict[str, list[str]]] = orjson.loads(_SAMPLES.read_bytes())
    return read
