"""Hits of a search, in as many words as their ranks need."""

from __future__ import annotations

from schemas.memories import SearchHit, State
from schemas.times import iso
from tests.support.making import memory_of, some_id


def hit(messages: str, session: str | None, bm25: int, cosine: int, at: int) -> SearchHit:
    """A memory whose messages have one letter each."""
    memory = memory_of(80)
    return SearchHit(
        id=some_id(),
        memory="",
        relevance=0.5,
        score=80,
        state=State.ACTIVE,
        importance=80,
        kind="exchange",
        created_at=iso(memory.created_at + at),
        session_id=session,
        agent_id=None,
        message_ids=[*messages],
        metadata={},
        superseded_by=None,
        summarized_by=None,
        explain={"bm25_rank": bm25, "cosine_rank": cosine},
    )
