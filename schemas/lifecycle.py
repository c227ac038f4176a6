"""The lifecycle of memories: how importance decays into a score, and which state a score has.

    score     = importance × 2^(−max(0, age − fresh_days) / half_life)      age: days since the last access
    half_life = half_life_days × 2^((importance − 70) / 10)                 30 days at 70, 240 days at 100

Each access raises the importance, so a memory that is often used lasts as long as an important one. For whole shards,
tables/database/sql/lifecycle.sql has the same formula. A test compares the two.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import numpy as np
import numpy.typing as npt

from schemas.memories import SHORT_TERM, Memory, ShownState, State
from schemas.settings import LifecycleSettings

Scores = npt.NDArray[np.float64]

DAY_MS = 86_400_000

#: The importance whose half-life is `half_life_days`. It is the least importance of a promoted exchange.
ORDINARY: Final = 70.0
#: The number of points of importance that doubles the half-life.
POINTS_TO_LAST_TWICE: Final = 10.0


def half_life_of(importance: float, lifecycle: LifecycleSettings) -> float:
    """Return the half-life in days: the time in which a memory of this importance loses half of its score."""
    return float(lifecycle.half_life_days * 2.0 ** ((importance - ORDINARY) / POINTS_TO_LAST_TWICE))


def score_of(memory: Memory, now: int, lifecycle: LifecycleSettings) -> float:
    """Return the memory's score, 0-100, at `now` (epoch ms). Pinned memories do not decay."""
    if memory.pinned:
        return memory.importance
    age_days = (now - memory.last_accessed) / DAY_MS
    stale_days = max(0.0, age_days - lifecycle.fresh_days)
    return float(memory.importance * 2.0 ** (-stale_days / half_life_of(memory.importance, lifecycle)))


def scores_of(
    importance: Scores,
    last_accessed: npt.NDArray[np.int64],
    pinned: npt.NDArray[np.bool_],
    now: int,
    lifecycle: LifecycleSettings,
) -> Scores:
    """Return the scores of many memories, float64[n], with exactly the values of `score_of`.

    Python computes the powers, because numpy's results differ in the last bit on some processors. This difference
    could change the state of a score that is on the border between two states. Fresh and pinned memories need no
    power. Many memories have the same importance, so the half-life of each importance is computed once.
    """
    stale_days = np.maximum(0.0, (now - last_accessed) / DAY_MS - lifecycle.fresh_days)
    ageing = np.flatnonzero((stale_days > 0) & ~pinned)
    scores = importance.astype(np.float64)
    importances = scores[ageing].tolist()
    half_lives = {each: half_life_of(each, lifecycle) for each in set(importances)}
    scores[ageing] *= np.array(
        [
            2.0 ** (-stale / half_lives[each])
            for stale, each in zip(stale_days[ageing].tolist(), importances, strict=True)
        ],
        np.float64,
    )
    return scores


def in_states(scores: Scores, states: Collection[State], lifecycle: LifecycleSettings) -> npt.NDArray[np.bool_]:
    """Return a mask, bool[n], that is true for each score whose state, by `state_of`, is one of `states`."""
    active, cold = scores >= lifecycle.active, scores >= lifecycle.cold
    bands = {State.ACTIVE: active, State.COLD: cold & ~active, State.DEPRECATED: ~cold & ~active}
    allowed = np.zeros(len(scores), np.bool_)
    for state in states:
        allowed |= bands[state]
    return allowed


def state_of(score: float, lifecycle: LifecycleSettings) -> State:
    """Return a score's state: active from `lifecycle.active`, cold from `lifecycle.cold`, otherwise deprecated."""
    if score >= lifecycle.active:
        return State.ACTIVE
    return State.COLD if score >= lifecycle.cold else State.DEPRECATED


def wanted_states(
    *, state: ShownState | None = None, include_all: bool = False, include_cold: bool = False
) -> frozenset[State]:
    """Return the states that a query includes. `state` overrides `include_all`, which overrides `include_cold`.

    Without these arguments, a query includes only active memories. The result is empty if the query is only for
    exchanges in short-term windows.
    """
    if state is not None:
        return frozenset({State(state)} if state != SHORT_TERM else ())
    if include_all:
        return frozenset(State)
    return frozenset({State.ACTIVE, State.COLD}) if include_cold else frozenset({State.ACTIVE})
