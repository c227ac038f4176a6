"""How well scores separate exchanges that are worth remembering from others."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Figures = dict[str, float | int | str | None]


class Row(NamedTuple):
    """A labelled exchange."""

    user: str
    assistant: str
    worthy: bool
    hard: bool


EQUAL_LENGTH: Final = 0.10
"""Two texts are equally long when the shorter lacks at most this share of the longer."""

KEEP_RATING: Final = 1
"""The lowest rating that keeps a border exchange, by default."""

HIGHER_VALUES: Final = (5, 7)
"""A model calls an exchange worth remembering from 5 on; if the rating alone decides, it is kept from 7 on."""


def auc(
    positive: NDArray[np.float64], negative: NDArray[np.float64], pairs: NDArray[np.bool_] | None = None
) -> float | None:
    """The share of (positive, negative) pairs that are in order, ties one half; None without pairs."""
    ahead = (positive[:, None] > negative) + 0.5 * (positive[:, None] == negative)
    chosen = ahead if pairs is None else ahead[pairs]
    return round(float(chosen.mean()), 4) if chosen.size else None


def share(of: NDArray[np.bool_], among: NDArray[np.bool_]) -> float | None:
    """The share of `among` for which `of` is true; None if `among` is empty."""
    return round(float(of[among].mean()), 4) if among.any() else None


def correlation(one: NDArray[np.float64], other: NDArray[np.float64]) -> float | None:
    """Pearson's correlation; None if one of them is constant."""
    return round(float(np.corrcoef(one, other)[0, 1]), 4) if one.std() and other.std() else None


def figures_of(rows: list[Row], score: NDArray[np.float64]) -> Figures:
    """How well scores separate the rows: rounded to values, 0-10, and as they are."""
    worthy = np.array([row.worthy for row in rows])
    hard = np.array([row.hard for row in rows]) & ~worthy
    plain = ~worthy & ~hard
    value = score.round()
    length = np.array([float(len(row.user) + len(row.assistant)) for row in rows])
    longer = np.maximum(length[worthy][:, None], length[~worthy])
    equal = np.abs(length[worthy][:, None] - length[~worthy]) <= EQUAL_LENGTH * longer
    kept = value >= KEEP_RATING
    figures: Figures = {
        "auc": auc(value[worthy], value[plain]),
        "auc_hard": auc(value[worthy], value[hard]),
        "auc_equal_length": auc(value[worthy], value[~worthy], equal),
        "score_auc": auc(score[worthy], score[plain]),
        "score_auc_hard": auc(score[worthy], score[hard]),
        "precision": share(worthy, kept),
        "precision_against_plain": share(worthy, kept & ~hard),
        "recall": share(kept, worthy),
    }
    for border in (KEEP_RATING, *HIGHER_VALUES):
        kept = value >= border
        figures[f"precision_at_{border}"] = share(worthy, kept)
        figures[f"recall_at_{border}"] = share(kept, worthy)
        figures[f"plain_kept_at_{border}"] = share(kept, plain)
    return figures
