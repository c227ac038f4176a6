"""Which memories a filter matches."""

from __future__ import annotations

import uuid
from dataclasses import replace
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.lifecycle import DAY_MS
from schemas.memories import Memory
from streams.recall.filtering import MOST_CONDITIONS, MOST_VALUES, OPERATORS, Filter, matching
from tests.support.making import START, memory_of

MEMORY: Memory = replace(
    memory_of(80),
    id=uuid.UUID("4f1c09ab-0000-4000-8000-000000000000"),
    meta={"tags": ["work", "tea"], "mood": "fine", "level": 3},
    agent_id=None,
    created_at=START,
)


@pytest.mark.parametrize(
    ("text", "matches"),
    [
        ("importance:eq:80", True),
        ("importance:ne:80", False),
        ("importance:gt:80", False),
        ("importance:gte:80", True),
        ("importance:lt:80.5", True),
        ("importance:lte:79", False),
        ("created_at:gte:2026-01-01T00:00:00Z", True),
        ('id:contains:"4f1c09ab"', True),
        ("id:eq:nobody", False),
        ("created_at:lt:2026-01-01", False),
        (f"created_at:eq:{START}", True),
        ("session_id:eq:s", True),
        ('session_id:in:["s","t"]', True),
        ('kind:nin:["exchange"]', False),
        ("agent_id:eq:null", True),
        ("agent_id:ne:null", False),
        ("pinned:eq:false", True),
        ("tags:contains:tea", True),
        ("tags:contains:te", False),
        ("metadata.mood:contains:in", True),
        ("metadata.mood:eq:fine", True),
        ("metadata.level:gt:2", True),
        ("metadata.level:gt:x", False),
        ("metadata.nothing:gt:1", False),
        ("metadata.nothing:contains:1", False),
        ("metadata.level:contains:1", False),
    ],
)
def test_a_filter_matches(text: str, matches: bool) -> None:
    assert Filter.parse(text).matches(MEMORY) is matches


NOON: Memory = replace(MEMORY, created_at=START + DAY_MS // 2)  # 2026-01-01T12:00Z


@pytest.mark.parametrize(
    ("operator", "days"),
    [
        ("eq", {"2026-01-01"}),
        ("ne", {"2025-12-31", "2026-01-02"}),
        ("gt", {"2025-12-31"}),
        ("gte", {"2025-12-31", "2026-01-01"}),
        ("lt", {"2026-01-02"}),
        ("lte", {"2026-01-01", "2026-01-02"}),
    ],
)
def test_a_date_without_a_time_is_a_day(operator: str, days: set[str]) -> None:
    """From its first millisecond to its last; with a time it is a moment."""
    asked = ("2025-12-31", "2026-01-01", "2026-01-02")
    assert {day for day in asked if Filter.parse(f"created_at:{operator}:{day}").matches(NOON)} == days
    for at in (START, START + DAY_MS - 1):
        assert Filter.of("created_at", "eq", "2026-01-01").matches(replace(NOON, created_at=at))
    for at in (START - 1, START + DAY_MS):
        assert not Filter.of("created_at", "eq", "2026-01-01").matches(replace(NOON, created_at=at))
    assert not Filter.parse("created_at:lte:2026-01-01T00:00:00Z").matches(NOON)


def test_a_day_may_be_one_of_several() -> None:
    days = ["2025-12-31", "2026-01-01"]
    assert Filter.of("created_at", "in", days).matches(NOON)
    assert not Filter.of("created_at", "nin", days).matches(NOON)
    assert not Filter.of("created_at", "in", ["2026-01-02", START]).matches(NOON)


@pytest.mark.parametrize(
    ("found", "text", "matches"),
    [
        (True, "eq:1", False),
        (1, "eq:true", False),
        (True, "eq:true", True),
        (0, "ne:false", True),
        (False, "lt:1", False),
        (True, "gte:1", False),
        (True, "in:[1]", False),
        (1, "in:[true,1.0]", True),
        (1, "nin:[true]", True),
        ([True, 2], "contains:1", False),
        ([1, 2], "contains:1", True),
        ([True], "eq:[1]", False),
        ({"a": {"b": True}}, 'eq:{"a":{"b":1}}', False),
        ({"a": True}, 'matches:{"a":1}', False),
        ({"a": True}, 'matches:{"a":{"$eq":1}}', False),
        ({"a": True}, 'matches:{"a":{"$ne":1}}', True),
        ({"a": True}, 'matches:{"a":{"$lte":1}}', False),
        ({"a": [1, False]}, 'matches:{"a":[1,0]}', False),
    ],
)
def test_true_is_not_1(found: Any, text: str, matches: bool) -> None:
    memory = replace(MEMORY, meta={"x": found})
    assert Filter.parse(f"metadata.x:{text}").matches(memory) is matches


@pytest.mark.parametrize(
    "text",
    [
        "importance",
        "importance:80",
        "importance:above:80",
        "user_id:eq:u",
        "seq:eq:1",
        "metadata.:eq:1",
        "meta:eq:1",
        "kind:in:exchange",
        "created_at:gt:yesterday",
        "created_at:in:2026-01-01",
        "importance:gt:null",
    ],
)
def test_a_wrong_filter_says_what_is_allowed(text: str) -> None:
    with pytest.raises(ValueError, match=r"filter is field|field is one of|takes|is not a time"):
        Filter.parse(text)


def test_all_filters_must_match() -> None:
    filters = [Filter.parse("importance:gte:80"), Filter.parse("session_id:eq:t")]
    assert matching([MEMORY], filters) == []
    assert matching([MEMORY], filters[:1]) == [MEMORY]


MANY = MOST_VALUES + 1


@pytest.mark.parametrize(
    "given_",
    [
        ["importance:gte:80"] * (MOST_CONDITIONS + 1),
        {f"metadata.k{n}": n for n in range(MOST_CONDITIONS + 1)},
        {"importance": {"gte": 1}, "metadata.k": dict.fromkeys(("eq", "ne"), 1) | {str(n): 1 for n in range(64)}},
        [f"session:in:{[*range(MANY)]}"],
        [f"session:in:{[*range(MOST_VALUES // 2)]}", f"session:nin:{[*range(MANY // 2 + 1)]}"],
        {"session": {"in": [[["s"] * MANY]]}},
        {"metadata.value": {"matches": {"a": {"b": {f"k{n}": n for n in range(MOST_CONDITIONS + 1)}}}}},
        ["metadata.value:matches:" + orjson.dumps({f"k{n}": n for n in range(MOST_CONDITIONS + 1)}).decode()],
        {"metadata.value": {"matches": {"a": [{"b": 1}] * (MOST_CONDITIONS + 1)}}},
    ],
    ids=range(9),
)
def test_filters_beyond_what_anybody_asks_by_hand_are_refused(given_: list[str] | dict[str, Any]) -> None:
    """Counted through nesting: all of it is asked of each memory."""
    with pytest.raises(ValueError, match="more than 64 conditions, or 1000 values"):
        Filter.all_of(given_)


def test_as_many_as_are_allowed_are_taken() -> None:
    assert len(Filter.all_of(["importance:gte:80"] * MOST_CONDITIONS)) == MOST_CONDITIONS
    assert len(Filter.all_of({f"metadata.k{n}": n for n in range(MOST_CONDITIONS)})) == MOST_CONDITIONS
    (one,) = Filter.all_of([f"session:in:{[*range(MOST_VALUES)]}"])
    assert len(one.value) == MOST_VALUES


def test_no_more_of_them_is_read_than_is_needed_to_refuse_them(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    monkeypatch.setattr(Filter, "of", lambda *given_: made.append(given_))
    for hostile in (["importance:gte:80"] * 100_000, {f"metadata.k{n}": n for n in range(100_000)}):
        with pytest.raises(ValueError, match="more than 64"):
            Filter.all_of(hostile)
    assert made == []


@given(
    st.sampled_from(["importance", "kind", "tags", "metadata.mood", "metadata.level", "agent_id"]),
    st.sampled_from(sorted(OPERATORS)),
    st.text(max_size=12) | st.integers().map(str) | st.sampled_from(["null", "true", "[]", "{}", '["a",1]']),
)
def test_any_filter_is_refused_or_answers(field: str, name: str, value: str) -> None:
    try:
        condition = Filter.parse(f"{field}:{name}:{value}")
    except ValueError:
        return
    assert condition.matches(MEMORY) in (True, False)
