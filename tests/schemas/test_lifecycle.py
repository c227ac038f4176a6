"""How importance decays, and which state a score is."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.lifecycle import DAY_MS, half_life_of, in_states, score_of, scores_of, state_of, wanted_states
from schemas.memories import Memory, State
from schemas.settings import LifecycleSettings
from tests.support.making import START, memory_of

LIFECYCLE = LifecycleSettings()


def after(days: float, memory: Memory, lifecycle: LifecycleSettings = LIFECYCLE) -> float:
    return score_of(memory, START + round(days * DAY_MS), lifecycle)


@pytest.mark.parametrize(
    ("days", "score"),
    [(-1, 70), (0, 70), (7, 70), (37, 35), (67, 17.5), (97, 8.75), (22, 70 * 0.5**0.5), (8, 70 * 0.5 ** (1 / 30))],
)
def test_importance_is_fresh_for_a_week_then_halves_every_30_days(days: float, score: float) -> None:
    assert after(days, memory_of(70, False)) == pytest.approx(score, rel=1e-12)


@pytest.mark.parametrize(
    ("importance", "half_life"), [(40, 3.75), (60, 15), (70, 30), (75, 30 * 2**0.5), (80, 60), (90, 120), (100, 240)]
)
def test_ten_points_of_importance_more_last_twice_as_long(importance: float, half_life: float) -> None:
    assert half_life_of(importance, LIFECYCLE) == pytest.approx(half_life, rel=1e-12)
    assert after(7 + half_life, memory_of(importance, False)) == pytest.approx(importance / 2, rel=1e-9)


def test_what_is_used_lasts() -> None:
    """Five accesses raise 80 to 90, which is active for more than twice as long after the last one."""
    used, unused = memory_of(90, False), memory_of(80, False)
    assert [state_of(after(days, unused), LIFECYCLE).value for days in (18, 19)] == ["active", "cold"]
    assert [state_of(after(days, used), LIFECYCLE).value for days in (50, 51)] == ["active", "cold"]


def test_the_week_ends_to_the_millisecond() -> None:
    memory = memory_of(80, False)
    assert score_of(memory, START + 7 * DAY_MS, LIFECYCLE) == 80
    assert score_of(memory, START + 7 * DAY_MS + 1, LIFECYCLE) < 80


def test_a_pinned_memory_does_not_decay() -> None:
    assert after(10_000, memory_of(80, True)) == 80


def test_age_counts_from_the_last_access() -> None:
    accessed = replace(memory_of(80, False), last_accessed=START + 30 * DAY_MS)
    assert (after(37, accessed), after(97, accessed)) == (80, 40)


def test_the_settings_say_how_fast() -> None:
    lifecycle = LifecycleSettings(fresh_days=0, half_life_days=1)
    assert [after(days, memory_of(70, False), lifecycle) for days in (0, 1, 2)] == [70, 35, 17.5]


def test_a_score_far_in_the_future_is_nothing() -> None:
    assert after(10_000_000, memory_of(100, False)) == 0


@given(st.floats(0, 100), st.floats(0, 400), st.floats(0, 400))
def test_a_score_never_rises_by_itself(importance: float, days: float, more: float) -> None:
    memory = memory_of(importance, False)
    assert 0 <= after(days + more, memory) <= after(days, memory) <= importance


@pytest.mark.parametrize(
    ("score", "state"),
    [
        (100, "active"),
        (70, "active"),
        (69.999, "cold"),
        (69.5, "cold"),
        (30, "cold"),
        (29.999, "deprecated"),
        (0, "deprecated"),
    ],
)
def test_states_are_half_open_bands(score: float, state: str) -> None:
    assert state_of(score, LIFECYCLE) is State(state)


def test_the_settings_say_where_the_states_begin() -> None:
    lifecycle = LifecycleSettings(active=50, cold=10)
    assert [state_of(score, lifecycle).value for score in (50, 49, 10, 9)] == ["active", "cold", "cold", "deprecated"]


def test_a_query_sees_the_active_ones() -> None:
    assert wanted_states() == {State.ACTIVE}


def test_include_cold_adds_the_cold_ones() -> None:
    assert wanted_states(include_cold=True) == {State.ACTIVE, State.COLD}


@pytest.mark.parametrize("include_cold", [False, True])
def test_include_all_comes_before_include_cold(include_cold: bool) -> None:
    assert wanted_states(include_all=True, include_cold=include_cold) == set(State)


@pytest.mark.parametrize(
    ("state", "include_all", "include_cold"), list(itertools.product(State, (False, True), (False, True)))
)
def test_a_named_state_comes_before_all(state: State, include_all: bool, include_cold: bool) -> None:
    assert wanted_states(state=state, include_all=include_all, include_cold=include_cold) == {state}


def test_what_is_in_windows_alone_is_in_no_state_of_a_memory() -> None:
    assert wanted_states(state="short_term", include_all=True) == set()


@given(
    st.lists(
        st.tuples(st.floats(0, 100) | st.integers(0, 100).map(float), st.integers(-50, 4_000), st.booleans()),
        max_size=20,
    ),
    st.integers(0, DAY_MS),
    st.sets(st.sampled_from(State)),
)
def test_many_memories_have_the_scores_and_states_of_each(
    drawn: list[tuple[float, int, bool]], since_midnight: int, states: set[State]
) -> None:
    """To the last bit: a score on a border is in the same state."""
    now = START + since_midnight
    memories = [
        replace(memory_of(importance, pinned), last_accessed=START - days * DAY_MS)
        for importance, days, pinned in drawn
    ]
    scores = scores_of(
        np.array([one.importance for one in memories], np.float64),
        np.array([one.last_accessed for one in memories], np.int64),
        np.array([one.pinned for one in memories], np.bool_),
        now,
        LIFECYCLE,
    )
    each = [score_of(one, now, LIFECYCLE) for one in memories]
    assert scores.tolist() == each
    assert in_states(scores, states, LIFECYCLE).tolist() == [state_of(one, LIFECYCLE) in states for one in each]
