"""Answers a prepared query on the shard's thread: ranks and filters the candidates, and returns the best as hits.

A reranker is asked between two such calls, because it must not block the thread: `to_rerank` returns the texts to be
scored, and `answers` gets their scores. It ranks anew, so that memories which changed meanwhile are as they are now.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import tzinfo
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from schemas.lifecycle import state_of
from schemas.memories import (
    SHORT_TERM,
    SHOWN_FROM,
    Memory,
    SearchHit,
    ShownState,
    State,
    TimeWindow,
    api_fields,
    shown_score,
)
from schemas.times import iso
from streams.recall.query import Hits, PreparedQuery, Query
from streams.recall.ranking import lifted, top
from streams.recall.relevance import Gathered, relevance_of
from streams.recall.times import READ, Reader
from streams.recall.updates import Newer, newest_first, outdated
from streams.recall.windows import as_memory
from streams.runtime.cancellation import cancellable
from tables.memories.items import KIND as ITEM
from tables.memories.items import is_expired
from tables.memories.shard import Shard
from tables.memories.validity import begins_after
from tables.search.candidates import Candidates
from tables.search.spoken_times import spoken_in
from tables.search.stated import Stated
from tables.search.window_rows import with_said
from tables.time_expressions.windows import Window

Rows = npt.NDArray[np.int64]

#: The decimals of the cosine and the BM25 that explain a hit.
_SHOWN_DECIMALS: Final = 4


def answers(shard: Shard, asked: PreparedQuery) -> Hits:
    """Return the user's memories and window exchanges that answer the query, best first. Runs on the shard's thread.

    It checks again which window exchanges have no memory, because that may change while the question is embedded. An
    exchange that has become a memory since then is found as that memory. A forgotten exchange is not returned.
    """
    hits = _hits(asked, _of_user(shard, asked))
    return hits if asked.said_vectors is None else _once(hits)


def archived_answers(shard: Shard, asked: PreparedQuery) -> list[SearchHit]:
    """Return the user's archived memories that answer the query, best first. Runs on the shard's thread.

    A memory that was forgotten while the question was embedded is not returned.
    """
    gathered = _archived(shard, asked)
    return [] if gathered is None else _hits(asked, gathered)


def to_rerank(shard: Shard, asked: PreparedQuery, most: int, *, archived: bool = False) -> dict[uuid.UUID, str]:
    """Return the texts of the `most` best candidates, best first, by memory id. Runs on the shard's thread.

    They are those of `answers`, or of `archived_answers`. Their relevance may be below the query's minimum, because a
    reranker may put them before others.
    """
    gathered = _archived(shard, asked) if archived else _of_user(shard, asked)
    if gathered is None:
        return {}
    relevance = relevance_of(asked, gathered)
    best = gathered.reader.memories(top(relevance.values, relevance.allowed, most))
    return {memory.id: memory.text for memory in best if not (memory.kind == ITEM and is_expired(memory, asked.now))}


def _of_user(shard: Shard, asked: PreparedQuery) -> Gathered:
    user_id = asked.query.user_id
    held = shard.held(user_id)
    candidates = shard.rows.candidates(held)
    dense = np.stack([shard.cosines(user_id, vector, candidates) for vector in asked.vectors])
    if asked.said_vectors is None:
        stored = Reader(
            lambda rows: shard.rows.memories(held.places[rows]),
            lambda rows, zone: shard.rows.spoken.of(held.places[rows], zone),
        )
        return Gathered(candidates, dense, stored)
    said = shard.without_memory(user_id, asked.said)
    left = {row.id for row in said}
    vectors = asked.said_vectors[[row.id in left for row in asked.said]]
    dense = np.concatenate([dense, asked.vectors @ vectors.T], axis=1)

    def shown(rows: Rows) -> list[Memory]:
        memories = iter(shard.rows.memories(held.places[rows[rows < len(held)]]))
        return [next(memories) if row < len(held) else as_memory(said[row - len(held)], user_id) for row in rows]

    def windows(rows: Rows, zone: tzinfo) -> list[list[Window]]:
        stored = iter(shard.rows.spoken.of(held.places[rows[rows < len(held)]], zone))
        read = iter(shown(rows[rows >= len(held)]))
        return [next(stored) if row < len(held) else spoken_in(next(read), zone) for row in rows]

    return Gathered(with_said(candidates, held.sessions, said), dense, Reader(shown, windows), len(said))


def _once(hits: Hits) -> Hits:
    """Remove from the hits each window exchange whose memory is also a hit.

    Exchanges and memories are compared by message ids, because an exchange that was open when it was read has another
    id than its memory.
    """
    kept = {(hit.session_id, one) for hit in hits if hit.state != SHORT_TERM for one in hit.message_ids}
    return Hits(
        (
            hit
            for hit in hits
            if hit.state != SHORT_TERM or kept.isdisjoint((hit.session_id, one) for one in hit.message_ids)
        ),
        hits.elsewhere,
    )


def _archived(shard: Shard, asked: PreparedQuery) -> Gathered | None:
    held = shard.archive_rows.of_user(asked.query.user_id)
    if not len(held):
        return None
    stored = shard.archive_rows.vectors(held)
    dense = np.stack([stored @ vector for vector in asked.vectors])

    def shown(rows: Rows) -> list[Memory]:
        return shard.archive_rows.memories(held, rows)

    reader = Reader(shown, lambda rows, zone: [spoken_in(memory, zone) for memory in shown(rows)])
    return Gathered(held.candidates, dense, reader)


def _hits(asked: PreparedQuery, gathered: Gathered) -> Hits:
    """Rank the candidates of a query, and return the best ones as hits."""
    candidates, reader = gathered.candidates, gathered.reader
    shown, memories = reader.memories, len(candidates) - gathered.said
    query, lifecycle = asked.query, asked.lifecycle
    relevance, allowed, asked_for, scores, cosine, words, reranked, event = relevance_of(asked, gathered)
    timed = asked.times.explained(event) if asked.times and query.explain else {}
    shown_relevance = lifted(relevance, asked.lift)
    allowed = allowed & (shown_relevance >= query.min_relevance)
    best, updates = top(relevance, allowed, query.top_k), dict[int, Newer]()
    if asked.updates and len(candidates.stated):
        moment = asked.now if query.as_of is None else query.as_of
        updates = outdated(_stated(query, candidates), best, allowed, shown, moment)
        relevance = newest_first(relevance, {older: newer.row for older, newer in updates.items()})
        if updates:
            best, shown_relevance = top(relevance, allowed, query.top_k), lifted(relevance, asked.lift)
    hits = []
    dated = query.reference if query.reference is not None and query.reference.dates else None
    times: list[list[Window]] = [[] for _ in best]
    if dated is not None:
        times[:READ] = reader.windows(best[:READ], dated.zone)
    for row, memory, windows in zip(best.tolist(), shown(best), times, strict=True):
        # Without filters, the candidates include expired items that the expiry job has not removed yet.
        if memory.kind == ITEM and is_expired(memory, asked.now):
            continue
        why: dict[str, Any] | None = None
        if query.explain:
            why = {
                "cosine": round(float(cosine[row]), _SHOWN_DECIMALS),
                "cosine_rank": _rank_of(cosine, allowed, row),
                "bm25": round(float(words[row]), _SHOWN_DECIMALS),
                "bm25_rank": _rank_of(words, allowed, row),
                **(reranked[row].explained() if row in reranked else {}),
                **timed,
            }
        score = float(scores[row]) if row < memories else memory.importance
        state: ShownState = state_of(score, lifecycle) if row < memories else SHORT_TERM
        by = updates[row].memory if row in updates else None
        if by is not None and memory.valid_to is None:
            said_since = query.as_of is not None and by.said_at > query.as_of
            memory = replace(memory, valid_to=by.created_at if said_since else begins_after(by, memory.said_at))
        hits.append(
            SearchHit(
                **api_fields(memory, SearchHit),
                relevance=round(float(shown_relevance[row]), 4),
                score=shown_score(score),
                state=state,
                updated_by=None if by is None else by.id,
                when=None if dated is None else dated.seen(memory),
                times=[_shown_window(window) for window in windows],
                explain=why,
            )
        )
    if len(query.states) == len(State):
        return Hits(hits)
    better = ~asked_for & (shown_relevance >= max(query.min_relevance, SHOWN_FROM))
    better[memories:] = False
    if len(best):
        better &= relevance > relevance[best[0]]
    if not query.replaced:
        better &= candidates.current
    return Hits(hits, _by_state(asked, relevance, scores, better, shown))


def _shown_window(window: Window) -> TimeWindow:
    return TimeWindow(text=window.text, from_=iso(window.start), to=iso(window.end), grain=window.grain)


def _stated(query: Query, candidates: Candidates) -> Stated:
    """Return the candidates' statements, as they were known at the time that is asked about."""
    stated = candidates.stated
    return stated if query.as_of is None else stated.by(query.as_of, candidates.created_at)


def _by_state(
    asked: PreparedQuery,
    relevance: npt.NDArray[np.float32],
    scores: npt.NDArray[np.float64],
    better: npt.NDArray[np.bool_],
    shown: Callable[[Rows], list[Memory]],
) -> Mapping[State, int]:
    """Count, by state, the memories in states that the query excludes but that are more relevant than every hit.

    `better` marks these memories. Only the `top_k` most relevant of them are tested with the filters and counted.
    """
    query = asked.query
    rows = top(relevance, better, query.top_k)
    if (conditions := query.conditions) and len(rows):
        kept = [all(one.matches(memory) for one in conditions) for memory in cancellable(shown(rows))]
        rows = rows[kept]
    return Counter(state_of(score, asked.lifecycle) for score in scores[rows].tolist())


def _rank_of(scores: npt.NDArray[np.float32], allowed: npt.NDArray[np.bool_], row: int) -> int:
    """Return the rank of a row's score among the scores of the allowed rows; 1 is the best.

    Scores that are shown as equal have the same rank. They may differ in the last bit, because a processor sums the
    products of vectors in another order for memories than for window exchanges.
    """
    shown = scores.round(_SHOWN_DECIMALS)
    return 1 + int(np.count_nonzero(shown[allowed] > shown[row]))
