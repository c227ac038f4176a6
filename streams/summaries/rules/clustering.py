"""Turns that go together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.random import default_rng
from numpy.typing import NDArray

from schemas.summaries import FEWEST_TOPICS, MOST_TOPICS

Vectors = NDArray[np.float32]
"""float32[n, d]"""

TOGETHER: Final = 0.1
"""Turns whose cosine is less, on average, are about different things."""

APART: Final = 0.05
"""Turns whose cosine is less are not put together even where that leaves more groups than there are topics."""

PRIOR_TURNS: Final = 10
"""How many turns it takes until half of their middle cosine passes for what unrelated ones have: people differ."""

FOLLOWING: Final = 0.08
"""What it adds to the cosine of two turns that one follows the other in their session."""

MOST_TURNS: Final = 300
"""So many turns, taken at random, are clustered; the others go where they are nearest."""


def clusters(vectors: Vectors, follows: Sequence[bool]) -> list[list[int]]:
    """Rows of unit vectors, float32[n, d], in groups; `follows` says of each whether it follows the one before.

    The nearest two groups become one (average linkage, of equals the first), down to the most topics that a summary
    has unless they are `APART`, and on to the fewest as long as they are `TOGETHER`. The same vectors always give the
    same groups.
    """
    n = len(vectors)
    chosen = vectors
    if n > MOST_TURNS:
        chosen = vectors[np.sort(default_rng(0).choice(n, MOST_TURNS, replace=False))]
    likeness = (chosen @ chosen.T).astype(np.float64)
    if chosen is vectors:
        near = [row for row, following in enumerate(follows) if following]
        likeness[near, [row - 1 for row in near]] += FOLLOWING
        likeness[[row - 1 for row in near], near] += FOLLOWING
    groups = _merged(_contrasted(likeness))
    if chosen is vectors:
        return groups
    centres = np.stack([chosen[rows].mean(axis=0) for rows in groups])
    nearest = np.argmax(vectors @ centres.T, axis=1)
    return [found.tolist() for group in range(len(groups)) if len(found := np.flatnonzero(nearest == group))]


def _contrasted(likeness: NDArray[np.float64]) -> NDArray[np.float64]:
    """Cosines as shares of what lies between the day's usual one and 1; of few turns, little is usual."""
    n = len(likeness)
    usual = float(np.median(likeness[np.triu_indices(n, 1)])) * n / (n + PRIOR_TURNS) if n > 1 else 0.0
    return (likeness - usual) / (1 - min(usual, 0.99))


def _merged(likeness: NDArray[np.float64]) -> list[list[int]]:
    np.fill_diagonal(likeness, -np.inf)
    groups: dict[int, list[int]] = {row: [row] for row in range(len(likeness))}
    while len(groups) > FEWEST_TOPICS:
        one, other = sorted(divmod(int(np.argmax(likeness)), len(likeness)))
        if likeness[one, other] < (APART if len(groups) > MOST_TOPICS else TOGETHER):
            break
        sizes = len(groups[one]), len(groups[other])
        mean = (likeness[one] * sizes[0] + likeness[other] * sizes[1]) / sum(sizes)
        mean[one] = -np.inf
        likeness[one], likeness[:, one] = mean, mean
        likeness[other], likeness[:, other] = -np.inf, -np.inf
        groups[one] = sorted(groups[one] + groups.pop(other))
    return list(groups.values())
