"""Groups related turns of a day, by the cosines of their vectors."""

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
"""Two groups of turns with a lower average cosine are about different things, and are not merged.

Above `MOST_TOPICS` groups, `APART` counts instead.
"""

APART: Final = 0.05
"""Two groups with a lower average cosine are never merged, even if more than `MOST_TOPICS` groups are left."""

PRIOR_TURNS: Final = 10
"""With this many turns, half of their median cosine is taken for the cosine of unrelated turns.

It is computed for each day, because it differs between people.
"""

FOLLOWING: Final = 0.08
"""Added to the cosine of two turns that follow each other in a session."""

MOST_TURNS: Final = 300
"""Maximum number of turns that are clustered.

If there are more, these are chosen at random, and each of the others joins the nearest group.
"""


def clusters(vectors: Vectors, follows: Sequence[bool]) -> list[list[int]]:
    """Group the rows of unit vectors, float32[n, d]. Return the row numbers of each group.

    `follows` is true for a row whose turn directly follows the turn of the row before. The two groups with the
    highest average cosine are merged repeatedly. If several pairs have the same cosine, the first pair is merged.
    While there are more than `MOST_TOPICS` groups, two groups are merged only if their cosine is at least `APART`;
    after that, only if it is at least `TOGETHER`. Merging ends at `FEWEST_TOPICS` groups. The same vectors always
    give the same groups.
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
    nearest = np.argmax(products(vectors[:, None], centres), axis=1)
    return [found.tolist() for group in range(len(groups)) if len(found := np.flatnonzero(nearest == group))]


def products(rows: Vectors, others: Vectors) -> Vectors:
    """Return the products of vectors along the last axis, float32. The other axes are broadcast.

    It is not `@`, because with five columns OpenBLAS reads memory of the stack that it has not written. If a
    signalling NaN is there, numpy warns of an invalid value, although the result is right.
    """
    found: Vectors = np.vecdot(rows, others)
    return found


def _contrasted(likeness: NDArray[np.float64]) -> NDArray[np.float64]:
    """Rescale cosines, so that the usual cosine of the day's turns becomes 0, and 1 stays 1.

    With few turns, the usual cosine is estimated to be lower than the median of all cosines: see `PRIOR_TURNS`.
    """
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
