"""The relevance of a user's memories and window exchanges to a prepared query. Runs on the shard's thread.

It is made in this order: words and meaning; the memory before it; a reranker's order; times that the question names.
Times come after the reranker, because a reranker does not know when something was said, or what day it is. So that
they raise memories as much as without it, it decides only among memories that they treat alike: among those of last
week, and among all others. Statements that a newer one updates come last (`updates`), so that no outdated one is
before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from schemas.lifecycle import in_states, scores_of
from streams.recall.order import Event
from streams.recall.query import PreparedQuery
from streams.recall.ranking import Scores, bm25, carry, fuse, lifted, top
from streams.recall.reranking import RerankedRow, reordered
from streams.recall.times import Raised, Reader
from streams.runtime.cancellation import cancellable
from tables.memories.items import is_expired
from tables.search.candidates import Candidates
from tables.vectors.index import Vectors

Mask = npt.NDArray[np.bool_]


class Gathered(NamedTuple):
    """What is ranked for a query. The last `said` candidates are window exchanges, which have no memory state.

    `dense` are the candidates' cosines for each of the query's vectors, float32[vectors, n]. `reader` reads
    candidates, given their indexes.
    """

    candidates: Candidates
    dense: Vectors
    reader: Reader
    said: int = 0


class Relevance(NamedTuple):
    """The relevance of each candidate, and what it comes from.

    `values` give the order; `lifted` makes of them what is shown and compared with thresholds. `asked_for` marks the
    candidates in the query's states, and `allowed` those of them that match its conditions. `scores` are their
    scores of the lifecycle. `cosine` and `words` (BM25) are those for the part of the query that matches best.
    `reranked` are the rows that a reranker has scored, `event` what the question counts from.
    """

    values: Scores
    allowed: Mask
    asked_for: Mask
    scores: npt.NDArray[np.float64]
    cosine: Scores
    words: Scores
    reranked: Mapping[int, RerankedRow]
    event: Event | None


def relevance_of(asked: PreparedQuery, gathered: Gathered) -> Relevance:
    """Rank the candidates of a query, also those below its minimum of relevance."""
    candidates, dense, reader, said = gathered
    query, lifecycle = asked.query, asked.lifecycle
    parts = len(asked.parts)  # behind them is the event from which the question counts, if there is one
    lexical = np.stack([bm25(candidates.terms, part) for part in (*asked.parts, *asked.clauses)])
    matches = fuse(dense, lexical, asked.scale, asked.dense_share)
    fused = carry(matches[:parts].max(axis=0), candidates.previous)
    scores = scores_of(candidates.importance, candidates.last_accessed, candidates.pinned, asked.now, lifecycle)
    asked_for = in_states(scores, query.states, lifecycle)
    asked_for[len(candidates) - said :] = query.short_term
    allowed = asked_for.copy() if query.replaced else asked_for & candidates.current
    if conditions := query.conditions:
        rows = np.flatnonzero(allowed)
        allowed[rows] = [
            all(one.matches(memory) for one in conditions) and not is_expired(memory, asked.now)
            for memory in cancellable(reader.memories(rows))
        ]
    of_event = lifted(matches[parts], asked.lift) if asked.clauses else None
    values, event, kinds = _with_times(asked, fused, allowed, gathered, of_event)
    reranked: Mapping[int, RerankedRow] = {}
    if asked.reranked is not None:
        best, by_id = top(values, allowed, asked.reranked.most), asked.reranked.scores
        # A memory that is new since the reranker was asked, or has another id, keeps its place.
        found = {row: by_id.get(one.id) for row, one in zip(best.tolist(), reader.memories(best), strict=True)}
        known = {row: score for row, score in found.items() if score is not None}
        rows = np.array(list(known), np.int64)
        changed, reranked = reordered(fused, rows, list(known.values()), kinds)
        values, event, _ = _with_times(asked, changed, allowed, gathered, of_event)
    cosine, words = dense[:parts].max(axis=0), lexical[:parts].max(axis=0)
    return Relevance(values, allowed, asked_for, scores, cosine, words, reranked, event)


def _with_times(
    asked: PreparedQuery, relevance: Scores, allowed: Mask, gathered: Gathered, of_event: Scores | None
) -> Raised:
    if not asked.times:
        return Raised(relevance)
    return asked.times.raised(relevance, gathered.candidates.created_at, allowed, gathered.reader, of_event)
