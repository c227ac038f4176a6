"""The order of a reranker, which has scored the best candidates of a search."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.int64]
Kinds = npt.NDArray[np.int8]
Scores = npt.NDArray[np.float32]

#: The decimals of the score that explains a hit. Some models give probabilities as small as 0.0001.
_SHOWN_DECIMALS: Final = 6


@dataclass(frozen=True, slots=True)
class Reranked:
    """A reranker's scores, by memory id, of the `most` best candidates of a query."""

    scores: Mapping[uuid.UUID, float]
    most: int


class RerankedRow(NamedTuple):
    """A candidate's score by the reranker, and its rank among the scored candidates; 1 is the best."""

    score: float
    rank: int

    def explained(self) -> dict[str, Any]:
        """Return the score and the rank in the form of the API."""
        return {"rerank_score": round(self.score, _SHOWN_DECIMALS), "rerank_rank": self.rank}


class Reordered(NamedTuple):
    """The relevance in the reranker's order, and the scored rows, best first."""

    relevance: Scores
    rows: Mapping[int, RerankedRow]


def reordered(relevance: Scores, rows: Rows, scores: Sequence[float], kinds: Kinds | None = None) -> Reordered:
    """Return the relevance, changed so that the `rows` are in the order of their scores; of equals, as given.

    The scored rows keep their values of relevance, but exchange them: the row with the best score gets the highest
    one. So relevance can still be compared between queries, thresholds keep their meaning, and all other rows keep
    their places. A reranker's own scores have another scale with each model. Of equal values, the second becomes the
    next smaller number, so that the order is the reranker's.

    With `kinds`, int8[n], only rows of the same kind exchange their values.
    """
    order = rows[np.argsort(-np.asarray(scores, np.float64), kind="stable")]
    of_kind = np.zeros(len(order), np.int64) if kinds is None else kinds[order]
    changed = relevance.copy()
    for kind in np.unique(of_kind):
        exchanging = order[of_kind == kind]
        values = np.sort(relevance[exchanging])[::-1]
        for at in range(1, len(values)):
            values[at] = min(values[at], np.nextafter(values[at - 1], np.float32(0)))
        changed[exchanging] = values
    by_row = dict(zip(rows.tolist(), scores, strict=True))
    return Reordered(changed, {row: RerankedRow(by_row[row], rank) for rank, row in enumerate(order.tolist(), 1)})
