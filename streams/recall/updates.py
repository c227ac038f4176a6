"""Ranks a statement before those that it updates. An outdated one is not hidden: it is behind the one that holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from schemas.memories import STILL_HOLDS, Memory
from tables.memories.items import is_expired
from tables.search.stated import Stated

Rows = npt.NDArray[np.int64]
Scores = npt.NDArray[np.float32]


class Newer(NamedTuple):
    """A memory that updates another one, and its row."""

    row: int
    memory: Memory


def outdated(
    stated: Stated, best: Rows, allowed: npt.NDArray[np.bool_], shown: Callable[[Rows], list[Memory]], now: int
) -> dict[int, Newer]:
    """Return those of the `best` rows that are outdated, each with the memory that updates it.

    Only `allowed` memories are compared. One whose metadata says that it still holds is not outdated, and one that
    has expired at the time `now` (epoch ms), or does not hold then by its user's word, updates nothing.
    """
    updates = stated.updates(allowed)
    pairs = np.isin(updates.older, best)
    older, newer = updates.older[pairs], updates.newer[pairs]
    if not len(older):
        return {}
    return {
        row: Newer(by, other)
        for row, by, memory, other in zip(older.tolist(), newer.tolist(), shown(older), shown(newer), strict=True)
        if memory.meta.get(STILL_HOLDS) is not True and not is_expired(other, now) and _may_hold(other, now)
    }


def _may_hold(memory: Memory, now: int) -> bool:
    begun = memory.valid_from is None or memory.valid_from <= now
    return begun and (memory.valid_to is None or now < memory.valid_to)


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
