"""Order in questions: the first or the last occasion, and what was before or after an event, are raised."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import UTC
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.memories import SearchHit
from schemas.times import iso, parse_timestamp
from streams.language.order import Occasion
from streams.recall.dates import ReferenceDate
from streams.recall.filtering import Filter
from streams.recall.order import Event, Spans, in_order
from streams.recall.ranking import questions
from streams.recall.times import AskedTimes
from tables.time_expressions.windows import windows_of
from tests.streams.recall.order_sets import CHINESE, ENGLISH, OrderSet
from tests.support.making import memory_of, promotion
from tests.support.talk import Talk, talk

TODAY = ReferenceDate(parse_timestamp("2026-03-20T12:00:00Z"), UTC)


@pytest.fixture
async def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Talk]:
    async with talk(tmp_path, monkeypatch) as made:
        yield made


def at(day: str) -> int:
    return parse_timestamp(f"{day}T12:00:00Z")


async def said(here: Talk, *memories: tuple[str, str]) -> None:
    await here.applied(*(promotion(text, str(n), at=at(day)) for n, (day, text) in enumerate(sorted(memories))))


async def asked(here: Talk, question: str, **fields: Any) -> list[SearchHit]:
    return await here.found(question, reference=TODAY, explain=True, **fields)


def why(hits: Sequence[SearchHit]) -> dict[str, Any]:
    assert hits[0].explain is not None
    return hits[0].explain


@pytest.mark.parametrize("one", [*ENGLISH, *CHINESE], ids=lambda one: one.question)
async def test_the_memory_that_an_order_asks_for_is_first(here: Talk, one: OrderSet) -> None:
    """The memory that tells of the event itself is not counted: it repeats words of the question."""
    await said(here, *one.memories)
    hits = await asked(here, one.question)
    event = why(hits).get("anchor", {}).get("memory_id")
    assert len(hits) == len(one.memories), "nothing is left out"
    found = [hit.memory for hit in hits if str(hit.id) != event]
    assert found[0] == one.memories[0][1], found


async def test_explain_has_the_order_and_the_event_with_its_moment_and_memory(here: Talk) -> None:
    await said(
        here,
        ("2023-05-05", "I baked a bread with seeds"),
        ("2024-05-05", "I baked a bread with walnuts"),
        ("2025-09-14", "The wedding was in September 2024"),
    )
    hits = await asked(here, "Which bread did I last bake before the wedding?")
    (event,) = [hit for hit in hits if "wedding" in hit.memory]
    for hit in hits:
        assert hit.explain is not None
        assert hit.explain["order"] == {"text": "last bake", "first": "latest"}
        assert hit.explain["anchor"] == {
            "text": "the wedding",
            "relation": "before",
            "memory_id": str(event.id),
            "from": "2024-09-01T00:00:00.000Z",
            "to": "2024-10-01T00:00:00.000Z",
        }
    (hit, *_) = await here.found("Which bread did I last bake before the wedding?", reference=TODAY)
    assert hit.explain is None


async def test_no_memory_is_raised_if_none_tells_of_the_event(here: Talk) -> None:
    await said(here, ("2023-02-01", "I painted a cat"), ("2025-02-01", "I painted a dog"))
    hits = await asked(here, "What did I paint after the earthquake?")
    assert why(hits)["anchor"] == {
        "text": "the earthquake",
        "relation": "after",
        "memory_id": None,
        "from": None,
        "to": None,
    }
    plain = await here.found("What did I paint after the earthquake?")  # without a reference date nothing is raised
    assert [(hit.id, hit.relevance) for hit in hits] == [(hit.id, hit.relevance) for hit in plain]


async def test_the_event_is_searched_only_among_the_memories_that_are_asked_for(here: Talk) -> None:
    """Filters included."""
    await said(here, ("2023-02-01", "I painted a cat"), ("2024-02-01", "It was a lovely wedding"))
    for first, found in (("2025-01-01", True), ("2023-06-01", False)):
        of = (Filter.of("created_at", "lt", first),)
        hits = await asked(here, "What did I paint before the wedding?", filters=of)
        assert (why(hits)["anchor"]["memory_id"] is not None) is found


async def test_questions_without_an_order_explain_none(here: Talk) -> None:
    await said(here, ("2023-02-01", "My first dog was called Rex"), ("2024-02-01", "My dog is called Bo"))
    for question in ("What was my first dog called?", "Is my dog called Bo?", "What did I say last week?"):
        hits = await asked(here, question)
        assert why(hits).keys().isdisjoint({"order", "anchor"})


async def test_an_event_costs_one_more_text_to_embed_and_other_questions_none(here: Talk) -> None:
    await said(here, ("2024-02-01", "It was a lovely wedding"))
    here.model.asked.clear()
    await asked(here, "What did I paint at home?")
    assert here.model.asked == ["What did I paint at home?"]
    here.model.asked.clear()
    await asked(here, "What did I paint before the wedding?")
    assert here.model.asked == ["What did I paint before the wedding?", "the wedding"]


def test_of_several_questions_none_has_an_order() -> None:
    both = AskedTimes.of(questions("Where is my key? And when did I first visit Rome after the wedding?"), TODAY)
    assert (both.order, both.anchor, both.when) == (None, None, True)


def test_an_order_inside_of_the_event_is_not_one_of_the_question() -> None:
    times = AskedTimes.of(["Who did I call after the first time I saw Rome?"], TODAY)
    assert times.order is None
    assert times.anchor is not None


def test_an_occasion_with_an_order_is_no_event() -> None:
    times = AskedTimes.of(["我第一次去北京的时候住在哪里？"], TODAY)
    assert times.anchor is None
    assert times.order is not None
    assert times.order.first == "earliest"


def test_an_event_whose_time_is_known_is_no_event() -> None:
    times = AskedTimes.of(["What did I eat after the concert on 5 May 2025?"], TODAY)
    assert times.anchor is None
    assert [window.text for window in times.windows] == ["on 5 May 2025"]


def spans(*days: tuple[int, int]) -> Spans:
    return Spans(np.array([start for start, _ in days], np.int64), np.array([end for _, end in days], np.int64))


def test_what_overlaps_is_not_ordered() -> None:
    """A year, a day in it, and a day after it."""
    rows = np.arange(3)
    year = spans((0, 365), (100, 101), (400, 401))
    assert year.ahead(rows, "earliest").tolist() == [0, 0, 2]
    assert year.ahead(rows, "latest").tolist() == [1, 1, 0]


def test_a_memory_that_matches_much_better_stays_first() -> None:
    relevance = np.array([0.5, 0.9], np.float32)
    assert in_order(relevance, np.array([1, 0]), spans((0, 1), (5, 6)), "earliest").argmax() == 1


@given(
    st.lists(st.tuples(st.floats(0, 1, width=32), st.integers(0, 9), st.integers(1, 5)), min_size=0, max_size=20),
    st.sampled_from(["earliest", "latest"]),
)
def test_an_order_only_raises_and_never_above_1(rows: list[tuple[float, int, int]], first: Occasion) -> None:
    relevance = np.array([value for value, *_ in rows], np.float32)
    when = spans(*((start, start + length) for _, start, length in rows))
    raised = in_order(relevance, np.arange(len(rows)), when, first)
    assert ((raised >= relevance) & (raised <= 1)).all()


def test_an_event_lasts_for_the_days_of_its_user() -> None:
    """What was said at 23:30 in Oslo is of that day, though another one has begun elsewhere."""
    moment = parse_timestamp("2025-06-10T21:30:00Z")
    times = AskedTimes.of(["What did I eat while I was in Berlin?"], TODAY)
    assert times.anchor is not None
    event = Event(times.anchor, 0, memory_of(50), moment, moment + 1)
    hours = [parse_timestamp(f"2025-06-{hour}:00:00Z") for hour in ("09T21", "09T22", "10T21", "10T22")]
    found = event.side(spans(*((hour, hour + 1) for hour in hours)), ZoneInfo("Europe/Oslo"))
    assert found.tolist() == [False, True, True, False]


@pytest.mark.parametrize(
    ("text", "day", "span"),
    [
        ("I went to Lisbon in 2019", "2024-06-10", ("2019-01-01", "2020-01-01")),
        ("I went to Lisbon", "2024-06-10", ("2024-06-10", None)),
        ("I went to Lisbon today", "2024-06-10", ("2024-06-10", None)),
        ("I will go to Lisbon in May 2027", "2024-06-10", ("2024-06-10", None)),
    ],
)
def test_a_memory_took_place_when_it_says_or_when_it_was_said(
    text: str, day: str, span: tuple[str, str | None]
) -> None:
    """The time of a plan says nothing before it is over, and "today" no more than the time of saying it."""
    times = AskedTimes.of(["When did I first go to Lisbon?"], TODAY)
    start, end = times._span(at(day), windows_of(text, at(day), TODAY.zone))
    assert iso(start)[:10] == span[0]
    assert end == start + 1 if span[1] is None else iso(end)[:10] == span[1]
