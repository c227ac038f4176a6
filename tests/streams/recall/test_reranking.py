"""A reranker puts the best hits in order, and everything else about them stays; if it fails, nothing changes."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.events import Archive, Edit, Forget
from schemas.memories import SHORT_TERM, SearchHit, State
from schemas.times import parse_timestamp
from streams.recall.dates import ReferenceDate
from streams.recall.filtering import Filter
from streams.recall.query import Query
from streams.recall.reranking import reordered
from streams.telemetry.metrics import labelled
from tests.support.making import START, line, promotion
from tests.support.openai_server import Answer, OpenAIServer, scored
from tests.support.talk import Talk, talk
from tests.support.waiting import until

DAY = 86_400_000
QUESTION = "Which tea does Ann like?"
BEST = promotion("Ann does like tea, which tea was it?", "0")
GOOD = promotion("Ann drinks green tea", "1", at=START + 1)
WEAK = promotion("the kettle is broken, Ann said", "2", at=START + 2)
OTHER = promotion("we sold the car", "3", at=START + 3)
ALL = (BEST, GOOD, WEAK, OTHER)


@pytest.fixture
def settings(server: OpenAIServer) -> dict[str, Any]:
    return {
        "backend": "service",
        "model": "judge-1",
        "api_key": "sk-test",
        "base_url": server.base_url,
        "timeout_seconds": 8,
    }


@pytest.fixture
async def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any]) -> AsyncIterator[Talk]:
    async with talk(tmp_path, monkeypatch, rerank=settings) as made:
        yield made


def prefers(server: OpenAIServer, *texts: str) -> None:
    """The service's judgement: these texts in this order, and all others equal."""
    scores = {text: float(len(texts) - place) for place, text in enumerate(texts)}
    server.answering = lambda request: Answer(body=scored([scores.get(text, 0.0) for text in request.documents]))


def texts(hits: list[SearchHit]) -> list[str]:
    return [hit.memory for hit in hits]


def rerankings(here: Talk) -> Mapping[str, int]:
    return {outcome: n for (outcome,), n in labelled(here.worker.metrics.rerank).items()}


async def fused(here: Talk, question: str = QUESTION, **fields: Any) -> list[SearchHit]:
    return await here.found(question, rerank=False, **fields)


async def test_the_best_hits_are_in_its_order_and_keep_their_values_of_relevance(
    here: Talk, server: OpenAIServer
) -> None:
    await here.applied(*ALL)
    before = await fused(here)
    assert texts(before) == [one.text for one in ALL]
    assert not server.received
    prefers(server, WEAK.text, OTHER.text, BEST.text)
    after = await here.found(QUESTION, explain=True)
    assert texts(after) == [WEAK.text, OTHER.text, BEST.text, GOOD.text]
    assert [hit.relevance for hit in after] == [hit.relevance for hit in before]
    shown = [hit.explain or {} for hit in after]
    assert [(one["rerank_rank"], one["rerank_score"]) for one in shown] == [(1, 3.0), (2, 2.0), (3, 1.0), (4, 0.0)]
    (request,) = server.received
    assert (request.body["query"], request.documents) == (QUESTION, texts(before))
    assert rerankings(here) == {"done": 1}


async def test_hits_beyond_the_candidates_stay_where_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], server: OpenAIServer
) -> None:
    async with talk(tmp_path, monkeypatch, rerank=settings | {"candidates": 2}) as here:
        await here.applied(*ALL)
        prefers(server, OTHER.text, GOOD.text)
        hits = await here.found(QUESTION, explain=True)
        assert texts(hits) == [GOOD.text, BEST.text, WEAK.text, OTHER.text]
        assert server.received[0].documents == [BEST.text, GOOD.text]
        assert ["rerank_rank" in (hit.explain or {}) for hit in hits] == [True, True, False, False]


async def test_a_good_hit_from_behind_is_among_the_few_that_are_asked_for(here: Talk, server: OpenAIServer) -> None:
    """That is what it is for. Only the hit that is shown counts as an access."""
    await here.applied(*ALL)
    prefers(server, WEAK.text)
    (hit,) = await here.found(QUESTION, top_k=1)
    assert hit.memory == WEAK.text
    assert hit.relevance >= here.worker.settings.lifecycle.access_min_relevance
    (touch,) = here.worker.recall._accesses.take()
    assert touch.memory_ids == [WEAK.memory_id]


async def test_only_what_may_be_shown_is_sent(here: Talk, server: OpenAIServer) -> None:
    """Neither a memory that the filters leave out, nor one that does not exist any more, nor another user's."""
    await here.applied(*ALL, promotion("which tea does Ann like", "4", user="v"))
    assert GOOD.memory_id is not None
    await here.applied(Forget(event_id=uuid.uuid4(), user_id="u", timestamp=START, memory_id=GOOD.memory_id))
    hits = await here.found(QUESTION, filters=(Filter.of("created_at", "gt", START),))
    assert sorted(texts(hits)) == sorted(server.received[0].documents) == sorted([WEAK.text, OTHER.text])


async def test_the_minimum_of_relevance_keeps_as_many_hits_and_of_these_the_best(
    here: Talk, server: OpenAIServer
) -> None:
    await here.applied(*ALL)
    least = (await fused(here))[1].relevance - 0.01
    assert texts(await fused(here, min_relevance=least)) == [BEST.text, GOOD.text]
    prefers(server, WEAK.text)
    assert texts(await here.found(QUESTION, min_relevance=least)) == [WEAK.text, BEST.text]


async def test_no_outdated_memory_is_before_the_one_that_updates_it(here: Talk, server: OpenAIServer) -> None:
    """Even if the reranker prefers it: the other one then is just before it."""
    old, new = promotion("my home: I live in Bergen", "0"), promotion("I moved to Oslo", "1", at=START + 2 * DAY)
    rainy = promotion("Bergen is rainy", "2")
    await here.applied(old, rainy, new)
    prefers(server, old.text, rainy.text)
    hits = await here.found("Do I live in Bergen?")
    assert texts(hits) == [new.text, old.text, rainy.text]
    assert [hit.updated_by for hit in hits] == [None, new.memory_id, None]
    assert [hit.relevance for hit in hits] == sorted((hit.relevance for hit in hits), reverse=True)


async def test_a_time_in_the_question_raises_as_much_as_without_it(here: Talk, server: OpenAIServer) -> None:
    """The reranker knows no dates: it decides among memories of that time, and among the others."""
    days = {"2026-03-10": "hiking near Bergen", "2026-03-11": "hiking near Turin", "2026-03-18": "hiking near Oslo"}
    noon = {day: parse_timestamp(f"{day}T12:00:00Z") for day in (*days, "2026-03-20")}
    await here.applied(*(promotion(text, day, at=noon[day]) for day, text in days.items()))
    asked: dict[str, Any] = {"reference": ReferenceDate(noon["2026-03-20"], UTC), "explain": True}
    prefers(server, "hiking near Oslo", "hiking near Bergen")
    hits = await here.found("Where did we go hiking last week?", **asked)
    assert texts(hits) == ["hiking near Bergen", "hiking near Turin", "hiking near Oslo"]
    prefers(server, "hiking near Oslo", "hiking near Turin")
    hits = await here.found("Where did we go hiking last week?", **asked)
    assert texts(hits) == ["hiking near Turin", "hiking near Bergen", "hiking near Oslo"]
    assert [(hit.explain or {})["rerank_rank"] for hit in hits] == [2, 3, 1]
    plain = await fused(here, "Where did we go hiking last week?", **asked)
    assert [hit.relevance for hit in hits] == [hit.relevance for hit in plain]


async def test_before_an_event_is_before_it_whatever_the_reranker_says(here: Talk, server: OpenAIServer) -> None:
    """It may decide between the two from before, and leaves the one from after behind them.

    The memory of the event itself, which matches best, does not exchange its relevance with any other.
    """
    told = ["hiking near Bergen", "hiking near Turin", "we adopted the cat Mimi", "hiking near Oslo"]
    memories = (promotion(text, text, at=START + 9 * place * DAY) for place, text in enumerate(told))
    await here.applied(*(one.model_copy(update={"session_id": one.text}) for one in memories))
    asked: dict[str, Any] = {"reference": ReferenceDate(START + 90 * DAY, UTC), "explain": True}
    question = "Where did we go hiking before we adopted the cat Mimi?"
    for best in (told[0], told[1]):
        prefers(server, told[3], best)
        hits = await here.found(question, **asked)
        assert (hits[0].explain or {})["anchor"]["memory_id"] is not None
        assert texts(hits) == [told[2], best, *({told[0], told[1]} - {best}), told[3]]
        assert {hit.memory: (hit.explain or {})["rerank_rank"] for hit in hits}[told[3]] == 1


async def test_what_was_just_said_is_put_in_order_with_the_memories(here: Talk, server: OpenAIServer) -> None:
    await here.applied(BEST, GOOD)
    await here.say(line(1, "u", "user", 90, content="Ann only drinks oolong"))
    prefers(server, "Ann only drinks oolong")
    first = (await here.found(QUESTION))[0]
    assert (first.memory, first.state) == ("Ann only drinks oolong", SHORT_TERM)


async def test_what_is_forgotten_while_it_is_scored_is_not_found(here: Talk, server: OpenAIServer) -> None:
    await here.applied(*ALL)
    prefers(server, GOOD.text, WEAK.text)
    server.gate.clear()
    asked = asyncio.ensure_future(here.found(QUESTION))
    await until(lambda: server.received)
    assert GOOD.memory_id is not None
    assert OTHER.memory_id is not None
    await here.applied(
        Forget(event_id=uuid.uuid4(), user_id="u", timestamp=START, memory_id=GOOD.memory_id),
        Edit(event_id=uuid.uuid4(), user_id="u", timestamp=START, memory_id=OTHER.memory_id, text="we sold the boat"),
        promotion("Which tea does Ann like now?", "9", at=START + 9),
    )
    server.gate.set()
    hits = texts(await asked)
    assert GOOD.text not in hits
    assert hits.index(WEAK.text) < hits.index(BEST.text)
    assert {"we sold the boat", "Which tea does Ann like now?"} < set(hits)


async def test_the_archive_is_put_in_order_too(here: Talk, server: OpenAIServer) -> None:
    await here.applied(*ALL)
    for one in ALL[:3]:
        assert one.memory_id is not None
        await here.applied(Archive(event_id=uuid.uuid4(), user_id="u", timestamp=START, memory_id=one.memory_id))
    prefers(server, WEAK.text)
    query = Query("u", QUESTION, 2, frozenset(State), replaced=True, explain=True)
    hits = await here.worker.recall.search_archive(query)
    assert texts(hits) == [WEAK.text, BEST.text]
    assert server.received[0].documents == [BEST.text, GOOD.text, WEAK.text]
    assert [(hit.explain or {})["rerank_rank"] for hit in hits] == [1, 2]


async def test_a_context_has_the_best_memories_in_its_order(here: Talk, server: OpenAIServer) -> None:
    await here.applied(*ALL)
    prefers(server, OTHER.text, WEAK.text)
    async with here.http() as http:
        asked = {"user_id": "u", "session_id": "s", "q": QUESTION, "memories": "2"}
        context = (await http.get("/v1/context", params=asked)).raise_for_status().json()
    assert [one["memory"] for one in context["memories"]] == [OTHER.text, WEAK.text]
    assert OTHER.text in context["prompt"]
    assert BEST.text not in context["prompt"]


@asynccontextmanager
async def _unchanged(here: Talk, **fields: Any) -> AsyncIterator[None]:
    """Within, the service fails: the answers are those of a worker without it, byte for byte."""
    body = {
        "user_id": "u",
        "query": QUESTION,
        "explain": True,
        "touch": False,
        "reference_date": "2026-01-05",
        **fields,
    }
    async with here.http() as http:
        reranker, here.worker.recall._reranker = here.worker.recall._reranker, None
        expected = (await http.post("/v1/search", json=body)).raise_for_status().content
        here.worker.recall._reranker = reranker
        yield
        found = (await http.post("/v1/search", json=body)).raise_for_status().content
    assert found == expected
    assert b"rerank" not in found


FAULTS = {
    "failed": Answer(status=500),
    "malformed": Answer(body=b'{"results": []}'),
    "broken": Answer(fault="broken"),
    "late": Answer(delay=60),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_search_is_as_without_it_if_it_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], server: OpenAIServer, fault: str
) -> None:
    seconds = 0.05 if fault == "late" else 8
    async with talk(tmp_path, monkeypatch, rerank=settings | {"timeout_seconds": seconds}) as here:
        await here.applied(*ALL)
        await here.say(line(1, "u", "user", 90, content="Ann only drinks oolong"))
        server.answering = lambda _: FAULTS[fault]
        async with _unchanged(here, include_all=True):
            pass
        assert rerankings(here) == {"late" if fault == "late" else "failed": 1}


async def test_without_a_model_nothing_is_asked_and_nothing_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], server: OpenAIServer
) -> None:
    async with talk(tmp_path, monkeypatch, rerank=settings | {"model": " "}) as here:
        assert here.worker._reranker is None
        await here.applied(*ALL)
        async with _unchanged(here):
            pass
        assert not server.received
        assert rerankings(here) == {}


async def test_a_question_without_candidates_is_not_sent(here: Talk, server: OpenAIServer) -> None:
    assert await here.found(QUESTION) == []
    await here.applied(BEST)
    assert await here.found("   ") == []
    assert await here.found(QUESTION, filters=(Filter.of("created_at", "gt", START + DAY),)) == []
    assert not server.received


VALUES = st.lists(st.floats(0, 1, width=32), min_size=1, max_size=20)


@st.composite
def scorings(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, list[float]]:
    """Relevances, the best rows of them in their order, and scores of these."""
    relevance = np.array(draw(VALUES), np.float32)
    best = np.argsort(-relevance, kind="stable")[: draw(st.integers(0, len(relevance)))]
    scores = draw(st.lists(st.sampled_from([-2.5, 0.0, 0.5, 1e30]), min_size=len(best), max_size=len(best)))
    return relevance, best, scores


def test_rows_of_different_kinds_exchange_nothing() -> None:
    relevance, kinds = np.array([0.9, 0.8, 0.3, 0.2], np.float32), np.array([1, 0, 1, 0], np.int8)
    changed, by_row = reordered(relevance, np.arange(4), [0.0, 1.0, 2.0, 3.0], kinds)
    assert changed.tolist() == relevance[[2, 3, 0, 1]].tolist()
    assert [(row, one.rank) for row, one in by_row.items()] == [(3, 1), (2, 2), (1, 3), (0, 4)]


@given(scorings())
def test_scored_rows_exchange_their_values_and_no_other_row_changes(
    scoring: tuple[np.ndarray, np.ndarray, list[float]],
) -> None:
    relevance, rows, scores = scoring
    changed, by_row = reordered(relevance, rows, scores)
    rest = np.setdiff1d(np.arange(len(relevance)), rows)
    np.testing.assert_array_equal(changed[rest], relevance[rest])
    np.testing.assert_allclose(np.sort(changed), np.sort(relevance), atol=1e-5)
    assert changed.dtype == np.float32
    assert ((changed >= 0) & (changed <= 1)).all()
    ranked = sorted(range(len(rows)), key=lambda place: (-scores[place], place))
    assert list(by_row) == [int(rows[place]) for place in ranked]
    in_order = changed[[int(rows[place]) for place in ranked]]
    assert all(before > after or after == 0 for before, after in pairwise(in_order))
    assert [one.rank for one in by_row.values()] == list(range(1, len(rows) + 1))
