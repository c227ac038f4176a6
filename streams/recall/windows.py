"""Selects the window exchanges of a user that a search ranks together with the memories.

The search itself reads and embeds the exchanges, so they cost nothing when messages arrive. A search reads at most
the newest `MOST` exchanges. Of these, it embeds the newest `NEWEST`, and up to `BY_WORDS` older exchanges whose words
match best.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final, NamedTuple, Self

import numpy as np

from schemas.conversations import Role
from schemas.exchanges import Exchange
from schemas.memories import SHORT_TERM, Memory, SearchHit, State, without_reserved
from schemas.sources import SOURCES
from streams.language.estimator import estimated_rating
from streams.recall.filtering import Condition, matching
from streams.recall.ranking import bm25, is_question, top
from streams.runtime.clock import Clock
from tables.search.window_rows import SaidRow, terms_of
from tables.windows.short_term import ShortTermStore

MOST: Final = 500
NEWEST: Final = 32
BY_WORDS: Final = 32


class ShownWindow(NamedTuple):
    """The part of a session's window that a prompt already shows."""

    session_id: str
    message_ids: frozenset[str]

    @classmethod
    def of(cls, session_id: str, exchanges: Iterable[Exchange]) -> Self:
        return cls(session_id, frozenset(said.message_id for one in exchanges for said in one.messages))

    def shows(self, session_id: str | None, message_ids: Collection[str]) -> bool:
        """True if the prompt shows at least one of the session's messages in `message_ids`."""
        return session_id == self.session_id and not self.message_ids.isdisjoint(message_ids)

    def holds(self, session_id: str | None, message_ids: Collection[str]) -> bool:
        """True if the prompt shows all of the session's messages in `message_ids`."""
        return self.shows(session_id, message_ids) and self.message_ids.issuperset(message_ids)

    def repeats(self, hit: SearchHit) -> bool:
        """True if the prompt shows the hit already: all of a memory, or any part of an exchange that is no memory."""
        seen = self.shows if hit.state == SHORT_TERM else self.holds
        return seen(hit.session_id, hit.message_ids)


class SaidLately:
    """Reads the unexpired exchanges in the windows of this worker's users."""

    def __init__(self, windows: ShortTermStore, clock: Clock, ttl_seconds: int) -> None:
        self._windows, self._clock, self._ttl_ms = windows, clock, ttl_seconds * 1000

    def by(self, partition: int, user_id: str) -> list[tuple[str, Exchange]]:
        """Return the user's newest unexpired exchanges, at most `MOST`, newest first, each with its session id."""
        since = self._clock.now() - self._ttl_ms
        return self._windows.newest_of(partition, user_id, since, MOST)


def repeats(exchange: Exchange, question: str) -> bool:
    """True if the exchange is the question of the search itself, without an answer yet.

    This happens if a chat service sends the user's message to the log before it searches with the same message.
    """
    said = [message.content for message in exchange.messages if message.role is Role.USER]
    answered = any(message.role is Role.ASSISTANT for message in exchange.messages)
    return not answered and is_question(question) and "\n".join(said).strip() == question.strip()


def worth_embedding(rows: Iterable[SaidRow], parts: Sequence[str]) -> list[SaidRow]:
    """Return the exchanges to embed, oldest first.

    These are the newest exchanges, and the older exchanges that best match the words of the question's parts.
    """
    ordered = sorted(rows, key=lambda row: (row.exchange.started_at, row.exchange.seq))
    older, newest = ordered[:-NEWEST], ordered[-NEWEST:]
    if len(older) > BY_WORDS:
        terms = terms_of(older)
        words = np.stack([bm25(terms, part) for part in parts]).max(axis=0)
        older = [older[place] for place in np.sort(top(words, words > 0, BY_WORDS)).tolist()]
    return [*older, *newest]


def matching_rows(rows: Sequence[SaidRow], user_id: str, filters: Sequence[Condition]) -> list[SaidRow]:
    """Return the exchanges that match all filters. A filter tests the memory that an exchange may become."""
    if not filters:
        return list(rows)
    by_id = {row.id: row for row in rows}
    return [by_id[memory.id] for memory in matching([as_memory(row, user_id) for row in rows], filters)]


def as_memory(row: SaidRow, user_id: str) -> Memory:
    """Return an exchange as the memory that it may become, without the metadata that only a promotion adds."""
    exchange, meta = row.exchange, without_reserved(row.exchange.metadata())
    if speakers := exchange.speakers():
        meta["speakers"] = speakers
    if sources := exchange.unusual_sources():
        meta[SOURCES] = sources
    return Memory(
        seq=-1,
        id=row.id,
        user_id=user_id,
        session_id=row.session_id,
        agent_id=exchange.agent_id,
        text=row.text,
        kind="exchange",
        message_ids=row.message_ids,
        importance=10.0 * estimated_rating(*exchange.said()),
        created_at=exchange.started_at,
        last_accessed=exchange.ended_at,
        access_count=0,
        state=State.ACTIVE,
        pinned=False,
        meta=meta,
    )
