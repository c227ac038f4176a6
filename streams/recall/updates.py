"""Ranks a statement before those that it updates. An outdated one is not hidden: it is behind the one that holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from schemas.memories import Memory
from tables.memories.items import is_expired
from tables.memories.validity import ended_or_not_begun
from tables.search.stated import Stated

Rows = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float32]


class Newer(NamedTuple):
    """A memory that updates another one, and its row."""

    row: int
    memory: Memory


def outdated(
    stated: Stated, best: Rows, allowed: npt.NDArray[np.bool_], shown: Callable[[Rows], list[Memory]], moment: int
) -> dict[int, Newer]:
    """Return those of the `best` rows that are outdated at a moment (epoch ms), each with the memory that updates it.

    Only `allowed` memories are compared. One whose metadata says that it still holds is not outdated, and one that
    has expired at that moment, or by its user's word does not hold then, updates nothing.
    """
    counted = allowed.copy()
    while True:
        updates = stated.updates(counted)
        pairs = np.isin(updates.older, best)
        older, newer = updates.older[pairs], updates.newer[pairs]
        if not len(older):
            return {}
        updating = dict(zip(newer.tolist(), shown(newer), strict=True))
        away = [row for row, one in updating.items() if is_expired(one, moment) or ended_or_not_begun(one, moment)]
        if not away:
            break
        counted[away] = False
    return {
        row: Newer(by, updating[by])
        for row, by, memory in zip(older.tolist(), newer.tolist(), shown(older), strict=True)
        if not memory.still_holds
    }


def newest_first(relevance: Scores, outdated: Mapping[int, int]) -> Scores:
    """Return the relevance, changed so that no outdated memory is before the one that updates it.

    The newer one is raised to the relevance of the outdated one, which becomes the next smaller number.
    """
    changed = relevance.copy()
    for _ in outdated:  # a memory that updates one may itself be outdated by its other statement
        for older, newer in outdated.items():
            changed[newer] = max(changed[newer], changed[older])
    for _ in outdated:
        for older, newer in outdated.items():
            changed[older] = min(changed[older], np.nextafter(changed[newer], np.float32(0)))
    return changed
