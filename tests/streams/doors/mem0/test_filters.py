"""mem0's filters, read and held against memories; what cannot be said is one line."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.memories import Memory
from streams.doors.mem0.filters import DEEPEST, Asked, asked
from streams.doors.mem0.reading import ListBody
from tests.support.making import START, memory_of

BASE = replace(memory_of(80), text="She drinks green tea in Kyoto")
TEA = replace(
    BASE,
    session_id="r1",
    agent_id="guide",
    meta={"app_id": "shop", "mood": "fine", "categories": ["food", "travel plans"], "n": 3},
)
BARE = replace(BASE, id=uuid.UUID(int=9), session_id=None, agent_id=None, meta={})


def holds(filters: dict[str, Any], memory: Memory) -> bool:
    found = asked({"AND": [{"user_id": "ann"}, filters]})
    assert found.user_id == "ann"
    return all(one.matches(memory) for one in found.conditions)


@pytest.mark.parametrize(
    ("filters", "tea", "bare"),
    [
        ({}, True, True),
        ({"run_id": "r1"}, True, False),
        ({"run_id": {"eq": "r1"}, "agent_id": "guide"}, True, False),
        ({"run_id": "*"}, True, False),
        ({"agent_id": {"in": ["guide", "cook"]}}, True, False),
        ({"agent_id": {"ne": "guide"}}, False, True),
        ({"app_id": "shop"}, True, False),
        ({"metadata": {"mood": "fine"}}, True, False),
        ({"metadata": {"mood": "fine", "n": {"gt": 3}}}, False, False),
        ({"metadata": {"n": {"gte": 3, "lt": 4}}}, True, False),
        ({"categories": {"in": ["food", "spam"]}}, True, False),
        ({"categories": {"in": ["foo"]}}, False, False),
        ({"categories": {"contains": "travel"}}, True, False),
        ({"categories": {"nin": ["food"]}}, False, True),
        ({"categories": "*"}, True, False),
        ({"keywords": {"icontains": "GREEN tea"}}, True, True),
        ({"keywords": {"contains": "GREEN tea"}}, False, False),
        ({"memory_ids": [str(uuid.UUID(int=9))]}, False, True),
        ({"created_at": {"gte": "2026-01-01", "lt": "2026-01-02T00:00:00Z"}}, True, True),
        ({"timestamp": {"gt": "2026-01-02"}}, False, False),
        ({"OR": [{"run_id": "r2"}, {"metadata": {"mood": "fine"}}]}, True, False),
        ({"OR": []}, False, False),
        ({"NOT": {"run_id": "r1"}}, False, True),
        ({"NOT": [{"run_id": "r2"}, {"agent_id": "guide"}]}, False, True),
        ({"OR": [{"AND": [{"run_id": "r1"}, {"agent_id": "cook"}]}, {"NOT": [{"agent_id": "*"}]}]}, False, True),
    ],
)
def test_a_filter_holds_of_what_it_says(filters: dict[str, Any], tea: bool, bare: bool) -> None:
    assert (holds(filters, TEA), holds(filters, BARE)) == (tea, bare)


@pytest.mark.parametrize(
    "filters",
    [
        {"user_id": "ann"},
        {"user_id": {"eq": "ann"}},
        {"user_id": {"in": ["ann"]}},
        {"AND": [{"AND": [{"user_id": "ann"}]}]},
        {"AND": [{"user_id": "ann"}, {"user_id": "ann"}]},
    ],
)
def test_the_user_is_named_beside_the_rest(filters: dict[str, Any]) -> None:
    assert asked(filters) == Asked("ann", ())


def test_a_filter_may_name_nobody() -> None:
    assert asked(None) == asked({}) == Asked(None, ())


def _deep() -> dict[str, Any]:
    filters: dict[str, Any] = {"run_id": "r"}
    for _ in range(DEEPEST + 1):
        filters = {"AND": [filters]}
    return filters


@pytest.mark.parametrize(
    ("filters", "why"),
    [
        ({"user_id": "*"}, "one user, by name"),
        ({"user_id": {"in": ["ann", "bob"]}}, "one user, by name"),
        ({"user_id": {"ne": "ann"}}, "one user, by name"),
        ({"user_id": 7}, "one user, by name"),
        ({"AND": [{"user_id": "ann"}, {"user_id": "bob"}]}, "send one request for each"),
        ({"OR": [{"user_id": "ann"}, {"agent_id": "guide"}]}, "give it once, beside AND, OR and NOT"),
        ({"NOT": [{"user_id": "ann"}]}, "give it once"),
        ({"colour": "red"}, "the field is one of user_id, agent_id"),
        ({"updated_at": {"gte": "2026-01-01"}}, "the field is one of"),
        ({"run_id": {"like": "r"}}, "the operator is one of eq, ne"),
        ({"run_id": {"in": "r1"}}, "takes a JSON list"),
        ({"run_id": {}}, "an empty object has no condition"),
        ({"created_at": {"gte": "yesterday"}}, "is not a time"),
        ({"keywords": "tea"}, "use contains or icontains"),
        ({"keywords": {"icontains": 3}}, "use contains or icontains"),
        ({"AND": {"user_id": "ann"}}, "takes a list"),
        ({"OR": "x"}, "takes a list"),
        ({"AND": ["x"]}, "a condition is an object"),
        ({"metadata": "x"}, "a condition is an object"),
        (_deep(), "nested more than"),
    ],
)
def test_what_cannot_be_said_is_refused_in_one_line(filters: dict[str, Any], why: str) -> None:
    with pytest.raises(ValueError, match=why) as refused:
        asked(filters)
    assert str(refused.value).startswith("filters: ")
    assert "\n" not in str(refused.value)


def test_what_is_beside_the_filters_holds_as_well() -> None:
    body = ListBody(filters={"user_id": "ann"}, categories=["food"], start_date="2026-01-01", end_date="2026-01-02")
    conditions = body.asked().conditions
    assert all(one.matches(TEA) for one in conditions)
    assert not all(one.matches(BARE) for one in conditions)
    assert not all(one.matches(replace(TEA, created_at=START + 3 * 86_400_000)) for one in conditions)


NAMES = st.sampled_from([
    "AND", "OR", "NOT", "user_id", "run_id", "app_id", "created_at", "memory_ids", "categories", "keywords",
    "metadata", "eq", "ne", "gt", "gte", "lt", "lte", "in", "nin", "contains", "icontains", "x",
])  # fmt: skip
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.just("*")
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(NAMES, ANYTHING, max_size=3))
def test_filters_of_any_shape_are_refused_or_answer(filters: dict[str, Any]) -> None:
    try:
        conditions = asked(filters).conditions
    except ValueError:
        return
    for memory in (TEA, BARE):
        assert {one.matches(memory) for one in conditions} <= {True, False}


@pytest.mark.parametrize(
    "filters",
    [
        {"OR": [{"run_id": str(n)} for n in range(65)]},
        {"AND": [{"OR": [{"run_id": "a"}] * 40}, {"NOT": [{"run_id": "a"}] * 40}]},
        {"OR": [{}] * 65},
        {"OR": [[]] * 1_001},
        {"categories": {"in": ["a"] * 1_001}},
        {"memory_ids": ["a"] * 1_001},
        {"metadata": {str(n): n for n in range(65)}},
    ],
    ids=range(7),
)
def test_more_than_anybody_asks_by_hand_is_refused(filters: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="filters: a filter: more than 64 conditions, or 1000 values in lists"):
        asked(filters)


def test_a_thousand_categories_are_asked_for_at_once() -> None:
    (one,) = asked({"categories": {"in": [f"c{n}" for n in range(999)] + ["food"]}}).conditions
    assert one.matches(TEA)
    assert not one.matches(BARE)
