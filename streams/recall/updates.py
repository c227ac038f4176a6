"""Ranks a statement before those that it updates. An outdated one is not hidden: it is behind the one that holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt

from schemas.memories import STILL_HOLDS, Memory
from tables.search.stated import Stated

Rows = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float32]


def outdated(
    stated: Stated, best: Rows, allowed: npt.NDArray[np.bool_], shown: Callable[[Rows], list[Memory]]
) -> dict[int, int]:
    """Return those of the `best` rows that are outdated, each with the row of the memory that updates it.

    That memory must be allowed, too. A memory whose metadata says that it still holds is not outdated.
    """
    updates = stated.updates
    if not len(updates.older):
        return {}
    pairs = np.isin(updates.older, best) & allowed[updates.newer]
    older, newer = updates.older[pairs], updates.newer[pairs]
    if not len(older):
        return {}
    return {
        row: by
        for row, by, memory in zip(older.tolist(), newer.tolist(), shown(older), strict=True)
        if memory.meta.get(STILL_HOLDS) is not True
    }


def newest_first(relevance: Scores, outdated: Mapping[int, int]) -> Scores:
    """Return the relevance, changed so that no outdated memory is before the one that updates it.

    The newer one is raised to the relevance of the outdated one, which becomes the next smaller number.
    """
    changed = relevance.copy()
    for older, newer in outdated.items():
        changed[newer] = max(changed[newer], relevance[older])
    for older, newer in outdated.items():
        changed[older] = min(changed[older], np.nextafter(changed[newer], np.float32(0)))
    return changed
