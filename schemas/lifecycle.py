"""How importance decays into a score, and which state a score is.

    score     = importance × 2^(−max(0, age − fresh_days) / half_life)      age since last access, in days
    half_life = half_life_days × 2^((importance − 70) / 10)                 30 days at 70, 240 at 100

An access raises importance, so what is used lasts as well as what matters. The same formula stands in
tables/database/sql/lifecycle.sql for whole shards; a test holds the two together.
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

#: The importance that `half_life_days` is the half-life of: that of the least that promotion keeps.
ORDINARY: Final = 70.0
#: So many points of importance more, and a memory lasts twice as long.
POINTS_TO_LAST_TWICE: Final = 10.0


def half_life_of(importance: float, lifecycle: LifecycleSettings) -> float:
    """The days in which a memory of this importance loses half of its score."""
    return float(lifecycle.half_life_days * 2.0 ** ((importance - ORDINARY) / POINTS_TO_LAST_TWICE))


def score_of(memory: Memory, now: int, lifecycle: LifecycleSettings) -> float:
    """The memory's score, 0-100, at `now` (epoch ms). Pinned memories do not decay."""
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
    """`score_of` of many memories, float64[n], to the last bit.

    The powers are Python's own: numpy's differ in the last bit on some processors, and a score that lies on a border
    would be in another state. Memories that are fresh or pinned need none. Few importances differ: each has its
    half-life computed once.
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
    """Which scores are in one of the states, bool[n]: as `state_of` has them."""
    active, cold = scores >= lifecycle.active, scores >= lifecycle.cold
    bands = {State.ACTIVE: active, State.COLD: cold & ~active, State.DEPRECATED: ~cold & ~active}
    allowed = np.zeros(len(scores), np.bool_)
    for state in states:
        allowed |= bands[state]
    return allowed


def state_of(score: float, lifecycle: LifecycleSettings) -> State:
    """Half-open bands: at least `active`, at least `cold`, below."""
    if score >= lifecycle.active:
        return State.ACTIVE
    return State.COLD if score >= lifecycle.cold else State.DEPRECATED


def wanted_states(
    *, state: ShownState | None = None, include_all: bool = False, include_cold: bool = False
) -> frozenset[State]:
    """The memories' states that a query sees: `state` before `include_all` before `include_cold`; active by default.

    None where it asks for what is in short-term windows alone.
    """
    if state is not None:
        return frozenset({State(state)} if state != SHORT_TERM else ())
    if include_all:
        return frozenset(State)
    return frozenset({State.ACTIVE, State.COLD}) if include_cold else frozenset({State.ACTIVE})
