"""What was measured of certain embedding models with real chats: benchmarks/README.md, "use and e5".

Each model has another scale: unrelated texts have a cosine of about 0.1 for `use`, and 0.85 for `e5`. So what counts
as similar depends on the model, and for `e5` also on the script of the texts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class LeastCosines:
    """The least cosines of similar memories, for each use of them."""

    #: Of memories that are summarized together: `long_term.group_cosine`.
    group: float
    #: Of the older memories that a new one may replace: `long_term.supersede.min_cosine`.
    supersede: float
    #: Of related memories in answers of the API: `min_similarity`.
    related: float
    #: Of related memories on a memory's screen in the dashboard.
    shown: float


@dataclass(frozen=True, slots=True)
class MeasuredModel:
    """The measured values of an embedding model.

    `dense_share` is the weight of the cosine beside BM25, whose weight is the rest. The least cosines are by the
    script of a memory's text: `cjk` if it contains any Chinese, Japanese or Korean, else `latin`. `latin_lift` raises
    the relevance to questions in a script that is not one of these: see `lifted` in `streams/recall/ranking.py`.
    """

    dense_share: float
    latin: LeastCosines
    cjk: LeastCosines
    latin_lift: float = 0.0


_USE_COSINES: Final = LeastCosines(group=0.4, supersede=0.35, related=0.5, shown=0.35)
USE: Final = MeasuredModel(dense_share=0.5, latin=_USE_COSINES, cjk=_USE_COSINES)
_E5: Final = MeasuredModel(
    dense_share=0.7,
    latin=LeastCosines(group=0.865, supersede=0.855, related=0.885, shown=0.855),
    cjk=LeastCosines(group=0.905, supersede=0.9, related=0.92, shown=0.9),
    latin_lift=0.5,
)
_MEASURED: Final = {"use-multilingual-v3": USE, "multilingual-e5-small-q4": _E5}


def measured_model(name: str) -> MeasuredModel:
    """Return what was measured of a model, by the name that shards record. Of others, return the values of `use`.

    >>> measured_model("multilingual-e5-small-q4").dense_share, measured_model("another").dense_share
    (0.7, 0.5)
    """
    return _MEASURED.get(name, USE)
