"""How importance decays into a score, and which state a score is.

    score = importance × 2^(−max(0, age − fresh_days) / half_life_days)      age since last access, in days

The same formula stands in tables/sql/lifecycle.sql for whole shards; a test holds the two together.
"""

from __future__ import annotations

from schemas.memories import Memory, State
from schemas.settings import LifecycleSettings

DAY_MS = 86_400_000


def score_of(memory: Memory, now: int, lifecycle: LifecycleSettings) -> float:
    """The memory's score, 0-100, at `now` (epoch ms). Pinned memories do not decay."""
    if memory.pinned:
        return memory.importance
    age_days = (now - memory.last_accessed) / DAY_MS
    stale_days = max(0.0, age_days - lifecycle.fresh_days)
    return float(memory.importance * 2.0 ** (-stale_days / lifecycle.half_life_days))


def state_of(score: float, lifecycle: LifecycleSettings) -> State:
    """Half-open bands: at least `active`, at least `cold`, below."""
    if score >= lifecycle.active:
        return State.ACTIVE
    return State.COLD if score >= lifecycle.cold else State.DEPRECATED


def wanted_states(
    *, state: State | None = None, include_all: bool = False, include_cold: bool = False
) -> frozenset[State]:
    """The states that a query sees: `state` before `include_all` before `include_cold`; active by default."""
    if state is not None:
        return frozenset({state})
    if include_all:
        return frozenset(State)
    return frozenset({State.ACTIVE, State.COLD}) if include_cold else frozenset({State.ACTIVE})
