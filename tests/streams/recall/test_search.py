"""A question to a shard: filtered before it is ranked, and only what is shown is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from schemas.events import Edit, LongTermEvent, Pin, Supersede
from schemas.lifecycle import DAY_MS, score_of, state_of
from schemas.memories import SHOWN_FROM, Memory, SearchHit, State, shown_score
from schemas.settings import LifecycleSettings, LongTermSettings
from schemas.times import iso
from streams.models.embedding.calibration import COSINE
from streams.recall.answers import answers
from streams.recall.filtering import Filter
from streams.recall.query import PreparedQuery, Query
from streams.recall.ranking import bm25, carry, fuse, lifted, top
from tables.memories.shard import Shard
from tables.runs import Places
from tables.search.search_rows import SearchRows
from tables.search.terms import Terms
from tests.support.making import START, axis, promotion
from tests.tables.commands import event
from tests.tables.memories.test_shard import touch

TEXTS = ["I live in Málaga", "我住在北京", "my sister likes hiking", "hiking again", "", "the cat sleeps"]


@pytest.fixture
def shard(tmp_path: Path) -> Iterator[Shard]:
    shard = Shard(0, tmp_path, "toy", 8, LongTermSettings(), LifecycleSettings())
    said = [
        promotion(text, f"{place}", at=START + place, importance=70 + 5 * place).model_copy(
            update={"session_id": f"s{place // 4}", "metadata": {"mood": "fine" if place % 2 else "sad"}}
        )
        for place, text in enumerate(TEXTS)
    ]
    shard.apply(said, {one.event_id: axis(place) for place, one in enumerate(said)}, START)
    ids = [one.memory_id for one in said]
    changes: list[LongTermEvent] = [
        event(Pin, "u", memory_id=ids[0]),
        event(Edit, "u", memory_id=ids[1], metadata={"tags": ["home"]}),
        event(Supersede, "u", memory_id=ids[2], by=ids[3]),
        touch(ids[5], at=START + 40 * DAY_MS),
    ]
    shard.apply(changes, {}, START)
    yield shard
    shard.close()


def asked(query: Query, days: float = 0) -> PreparedQuery:
    vector = ((axis(3) + axis(1)) / 2**0.5).astype(np.float32)
    return PreparedQuery(query, [query.text], vector[None], COSINE, START + round(days * DAY_MS), LifecycleSettings())


def one_by_one(shard: Shard, question: PreparedQuery) -> list[SearchHit]:
    """The same as a plain loop over memories."""
    query, memories = question.query, shard.memories_of(question.query.user_id)
    dense = shard.similarities(query.user_id, question.vectors[0], memories)
    newest: dict[str | None, int] = {}
    previous = []
    for row, memory in enumerate(memories):
        previous.append(newest.get(memory.session_id, -1))
        newest[memory.session_id] = row
    lexical = bm25(Terms.of(memory.text for memory in memories), query.text)
    relevance = carry(fuse(dense, lexical, question.scale, question.dense_share), np.array(previous, np.int64))
    shown = lifted(relevance, question.lift)

    def state(memory: Memory) -> State:
        return state_of(score_of(memory, question.now, question.lifecycle), question.lifecycle)

    allowed = np.array(
        [
            state(memory) in query.states
            and (query.replaced or memory.current)
            and all(condition.matches(memory) for condition in query.filters)
            and shown[row] >= query.min_relevance
            for row, memory in enumerate(memories)
        ],
        np.bool_,
    )
    return [
        SearchHit(
            id=memory.id,
            memory=memory.text,
            relevance=round(float(shown[row]), 4),
            score=shown_score(score_of(memory, question.now, question.lifecycle)),
            state=state(memory),
            importance=memory.importance,
            kind=memory.kind,
            created_at=iso(memory.created_at),
            session_id=memory.session_id,
            agent_id=memory.agent_id,
            message_ids=list(memory.message_ids),
            metadata=memory.meta,
            pinned=memory.pinned,
            superseded_by=memory.superseded_by,
            valid_from=None if memory.valid_from is None else iso(memory.valid_from),
            valid_to=None if memory.valid_to is None else iso(memory.valid_to),
        )
        for row in top(relevance, allowed, query.top_k)
        for memory in [memories[row]]
    ]


EVERY = Query("u", "where do I live, hiking?", 10, frozenset(State))


@pytest.mark.slow
@pytest.mark.parametrize("days", [0, 7.5, 30, 300])
@pytest.mark.parametrize(
    "query",
    [
        EVERY,
        replace(EVERY, replaced=True),
        replace(EVERY, states=frozenset({State.ACTIVE}), top_k=2),
        replace(EVERY, states=frozenset({State.COLD, State.DEPRECATED}), replaced=True),
        replace(EVERY, min_relevance=0.3),
        replace(EVERY, text="我住哪里？"),
        replace(EVERY, filters=(Filter.parse("metadata.mood:eq:fine"), Filter.parse("importance:gte:75"))),
        replace(EVERY, filters=(Filter.parse("tags:contains:home"),)),
        replace(EVERY, filters=(Filter.parse("session:eq:s1"), Filter.parse("pinned:eq:false"))),
        replace(EVERY, user_id="nobody"),
    ],
)
@pytest.mark.parametrize(("share", "lift"), [(0.5, 0.0), (0.7, 0.5)])
def test_arrays_answer_as_a_loop_over_memories_does(
    shard: Shard, query: Query, days: float, share: float, lift: float
) -> None:
    question = replace(asked(query, days), dense_share=share, lift=lift)
    assert answers(shard, question) == one_by_one(shard, question)


def test_a_lift_changes_what_is_shown_and_not_the_order(shard: Shard) -> None:
    """So a minimum of relevance keeps its meaning."""
    plain, raised = answers(shard, asked(EVERY)), answers(shard, replace(asked(EVERY), lift=0.5))
    assert [hit.id for hit in raised] == [hit.id for hit in plain]
    assert all(high.relevance > low.relevance for high, low in zip(raised, plain, strict=True))
    least = raised[1].relevance - 0.0001
    assert plain[1].relevance < least
    query = replace(EVERY, min_relevance=least)
    assert len(answers(shard, asked(query))) == 1
    assert len(answers(shard, replace(asked(query), lift=0.5))) == 2


def test_a_lift_counts_for_memories_in_other_states_too(shard: Shard) -> None:
    query = asked(replace(EVERY, states=frozenset({State.COLD})), days=7.5)
    low, high = (answers(shard, replace(query, lift=lift)).elsewhere for lift in (0.0, 2.0))
    assert sum(low.values()) < sum(high.values())


def test_an_explanation_ranks_among_the_allowed(shard: Shard) -> None:
    hits = answers(shard, asked(replace(EVERY, explain=True)))
    why = [hit.explain or {} for hit in hits]
    assert {one["cosine_rank"] for one in why if one["cosine"] > 0.5} == {1}
    assert min(one["bm25_rank"] for one in why) == 1


def test_what_would_have_answered_better_in_other_states_is_counted_by_state(shard: Shard) -> None:
    """Among 40 days old ones the pinned one alone is active, and the one that was touched."""
    question = asked(replace(EVERY, text="hiking again", states=frozenset({State.ACTIVE})), days=40)
    everything = answers(shard, replace(question, query=replace(question.query, states=frozenset(State))))
    best = max(hit.relevance for hit in everything if hit.state is State.ACTIVE)
    better = [hit.state for hit in everything if hit.relevance > best and hit.relevance >= SHOWN_FROM]
    assert better
    assert answers(shard, question).elsewhere == Counter(better)
    assert sum(answers(shard, replace(question, query=replace(question.query, top_k=1))).elsewhere.values()) == 1
    assert not everything.elsewhere


@pytest.mark.parametrize(
    "query",
    [
        replace(EVERY, text="hiking again", filters=(Filter.parse("metadata.mood:eq:none"),)),
        replace(EVERY, text="hiking again", min_relevance=0.999),
        replace(EVERY, text="quantum physics"),
    ],
)
def test_what_no_filter_lets_through_or_nobody_would_call_an_answer_is_not_better(shard: Shard, query: Query) -> None:
    question = asked(replace(query, states=frozenset({State.DEPRECATED})), days=40)
    vectors = np.stack([axis(7)]) if query.text == "quantum physics" else question.vectors
    assert not answers(shard, replace(question, vectors=vectors)).elsewhere


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many memories were read at a time."""
    counts: list[int] = []
    memories = SearchRows.memories

    def counting(rows: SearchRows, places: Places) -> list[Memory]:
        if len(places):
            counts.append(len(places))
        return memories(rows, places)

    monkeypatch.setattr(SearchRows, "memories", counting)
    return counts


def test_only_what_is_shown_is_read(shard: Shard, read: list[int]) -> None:
    assert len(answers(shard, asked(replace(EVERY, top_k=2)))) == 2
    assert read == [2]


def test_a_filter_reads_what_nothing_else_has_ruled_out(shard: Shard, read: list[int]) -> None:
    answers(shard, asked(replace(EVERY, filters=(Filter.parse("tags:contains:home"),))))
    assert read == [len(TEXTS) - 1, 1]  # one is superseded
