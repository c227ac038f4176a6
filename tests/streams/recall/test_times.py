"""Time in questions: what lies in a window is raised, and nothing is left out."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import UTC, tzinfo
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.memories import SHOWN_FROM, Memory, SearchHit, State
from schemas.times import parse_timestamp
from streams.recall.dates import ReferenceDate
from streams.recall.query import Query
from streams.recall.ranking import questions
from streams.recall.times import READ, AskedTimes, Reader, Rows
from tables.search import spoken_times
from tables.time_expressions.windows import Window, windows_of
from tests.support.making import memory_of, promotion
from tests.support.talk import Talk, talk

ASKED = parse_timestamp("2026-03-20T12:00:00Z")
TODAY = ReferenceDate(ASKED, UTC)


@pytest.fixture
async def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Talk]:
    async with talk(tmp_path, monkeypatch) as made:
        yield made


def at(day: str) -> int:
    return parse_timestamp(f"{day}T12:00:00Z")


def times_in(question: str) -> AskedTimes:
    return AskedTimes.of(questions(question), TODAY)


async def asked(here: Talk, question: str, **fields: Any) -> list[SearchHit]:
    return await here.found(question, reference=TODAY, **fields)


async def test_what_was_said_at_the_time_is_first(here: Talk) -> None:
    await here.applied(
        promotion("we went hiking near Oslo", "0", at=at("2026-03-02")),
        promotion("hiking near Bergen was cold", "1", at=at("2026-03-10")),
        promotion("our hiking near Turin", "2", at=at("2026-03-18")),
    )
    (first, *others) = await asked(here, "Where did we go hiking last week?", explain=True)
    assert first.memory == "hiking near Bergen was cold"
    assert len(others) == 2, "they are not left out"
    assert first.explain is not None
    assert first.explain["times"] == [
        {"text": "last week", "from": "2026-03-09T00:00:00.000Z", "to": "2026-03-16T00:00:00.000Z"}
    ]
    (first, *_) = await asked(here, "上周我们去哪里 hiking？")
    assert first.memory == "hiking near Bergen was cold"


async def test_what_speaks_of_the_time_is_raised_too(here: Talk) -> None:
    """It was said in March, about June."""
    await here.applied(
        promotion("the trip to Norway with Tom", "0", at=at("2026-03-01")),
        promotion("the trip to Norway last June", "1", at=at("2026-03-02")),
        promotion("a trip to Norway, again with Tom", "2", at=at("2026-03-03")),
    )
    hits = await asked(here, "What of the trip to Norway with Tom in June 2025?")
    assert hits[0].memory == "the trip to Norway last June"


async def test_hits_show_what_their_texts_speak_of(here: Talk) -> None:
    """In the zone of the question, and not if answers have no dates."""
    await here.applied(promotion("we met Tom last Friday in Rome", "1", at=at("2026-03-11")))
    (hit,) = await asked(here, "Where did we meet Tom?")
    friday = {"text": "last Friday", "from": "2026-03-06T00:00:00.000Z", "to": "2026-03-07T00:00:00.000Z"}
    assert hit.model_dump(mode="json")["times"] == [friday | {"grain": "day"}]
    (elsewhere,) = await here.found("Where did we meet Tom?", reference=ReferenceDate(ASKED, ZoneInfo("Asia/Tokyo")))
    assert [window.from_ for window in elsewhere.times] == ["2026-03-05T15:00:00.000Z"]
    for undated in (None, replace(TODAY, dates=False)):
        assert [one.times for one in await here.found("Where did we meet Tom?", reference=undated)] == [[]]


async def test_a_question_of_time_reads_no_text(here: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once the times of its memories are stored. The answers are the same."""
    said = [
        promotion(f"trip {place} with Tom on March {place + 1}", f"{place}", at=at("2026-03-15"))
        for place in range(9)
    ]
    await here.applied(*said)
    question = "When was the trip with Tom in the first week of March?"
    before, partition = await asked(here, question), here.worker.context.partition_of("u")
    while await here.worker.shards.call(partition, lambda shard: shard.rows.fill(100)):
        pass

    def unread(*_: object) -> list[Window]:
        raise AssertionError("a text is read")

    monkeypatch.setattr(spoken_times, "spoken_in", unread)
    assert await asked(here, question) == before
    assert all(hit.times for hit in before)


async def test_a_text_is_read_once_in_a_search(here: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    """For the ranking and for the hits, if its times are not stored in the zone of the question."""
    said = [promotion(f"trip {day} with Tom last Friday", f"{day}", at=at("2026-03-15")) for day in range(4)]
    await here.applied(*said)
    read, spoken_in = list[str](), spoken_times.spoken_in

    def noted(memory: Memory, zone: tzinfo) -> list[Window]:
        read.append(memory.text)
        return spoken_in(memory, zone)

    monkeypatch.setattr(spoken_times, "spoken_in", noted)
    tokyo = ReferenceDate(ASKED, ZoneInfo("Asia/Tokyo"))
    hits = await here.found("When was the trip with Tom in March?", reference=tokyo)
    assert sorted(read) == sorted(hit.memory for hit in hits)


async def test_a_memory_outside_can_still_be_first(here: Talk) -> None:
    await here.applied(
        promotion("my sister Anna adopted a grey cat named Mimi", "0", at=at("2026-02-01")),
        promotion("I bought bread", "1", at=at("2026-03-11")),
    )
    hits = await asked(here, "Which grey cat named Mimi did my sister Anna adopt last week?")
    assert [hit.memory for hit in hits] == ["my sister Anna adopted a grey cat named Mimi", "I bought bread"]


async def test_who_asks_when_gets_what_names_a_time(here: Talk) -> None:
    await here.applied(
        promotion("the support group was so powerful", "0", at=at("2026-03-01")),
        promotion("I went to the support group yesterday", "1", at=at("2026-03-02")),
        promotion("the support group helps me", "2", at=at("2026-03-03")),
    )
    assert (await asked(here, "When was the support group?"))[0].memory == "I went to the support group yesterday"


async def test_what_is_below_the_limit_may_be_above_it_by_its_time(here: Talk) -> None:
    await here.applied(promotion("my sister bought bread and a lamp", "1", at=at("2026-03-11")))
    question, in_june = "What did my sister do last week?", ReferenceDate(at("2026-06-20"), UTC)
    (raised,), (hit,) = await asked(here, question), await here.found(question, reference=in_june)
    assert hit.relevance < raised.relevance < 1
    between = (hit.relevance + raised.relevance) / 2
    assert await here.found(question, reference=in_june, min_relevance=between) == []
    assert len(await asked(here, question, min_relevance=between)) == 1


async def test_what_has_nothing_to_do_with_it_stays_irrelevant(here: Talk) -> None:
    await here.applied(promotion("I bought bread", "1", at=at("2026-03-20")))
    (hit,) = await asked(here, "Which violin concert was it today?")
    assert hit.relevance < SHOWN_FROM / 2


def test_chat_around_the_questions_names_no_time() -> None:
    both = times_in("Last week was cold! Where is my key? And who came in February?")
    assert [window.text for window in both.windows] == ["in February"]
    assert [window.text for window in times_in("Last week was cold").windows] == ["Last week"]


@pytest.mark.parametrize(
    ("question", "when"),
    [
        ("When did I move?", True),
        ("What year was it?", True),
        ("我什么时候搬家的？", True),
        ("Where do I live?", False),
        ("我住在哪里？", False),
    ],
)
def test_which_questions_ask_for_a_time(question: str, when: bool) -> None:
    found = times_in(question)
    assert (found.when, bool(found)) == (when, when)


@given(
    st.lists(st.tuples(st.floats(0, 1, width=32), st.integers(0, 40), st.booleans()), min_size=1, max_size=60),
    st.sampled_from(["Where was I last week?", "When was it?", "When did I first go there in March?", "Where?"]),
)
def test_only_up_and_never_above_1(rows: Sequence[tuple[float, int, bool]], question: str) -> None:
    """And few texts are read, however many memories there are."""
    relevance = np.array([value for value, *_ in rows], np.float32)
    created = np.array([ASKED - days * 86_400_000 for _, days, _ in rows], np.int64)
    allowed = np.array([one for *_, one in rows], np.bool_)
    read = 0

    def windows(places: Rows, zone: tzinfo) -> list[list[Window]]:
        nonlocal read
        read += len(places)
        assert allowed[places].all()
        return [windows_of("We met last week", int(created[place]), zone) for place in places]

    reader = Reader(lambda places: [memory_of(50) for _ in places], windows)
    raised, *_ = times_in(question).raised(relevance, created, allowed, reader)
    assert ((raised >= relevance) & (raised <= 1)).all()
    assert read <= READ


async def test_without_a_time_nothing_is_read_or_raised(here: Talk) -> None:
    await here.applied(promotion("I live in Oslo", "0", at=at("2026-03-11")))
    plain = await here.worker.recall.search(Query("u", "Where do I live?", 10, frozenset(State)))
    assert [hit.relevance for hit in plain] == [hit.relevance for hit in await asked(here, "Where do I live?")]
