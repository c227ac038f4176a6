"""Selects the window exchanges that may answer a question, so that only these are embedded.

The functions run on the shard's thread, because the shard knows which exchanges have a memory.
"""

from __future__ import annotations

from collections.abc import Sequence

from schemas.exchanges import Exchange
from schemas.memories import Memory
from streams.recall.query import Query
from streams.recall.ranking import questions
from streams.recall.windows import as_memory, matching_rows, repeats, worth_embedding
from tables.memories.shard import Shard
from tables.search.window_rows import SaidRow, SaidRows


def candidates_of(
    shard: Shard, query: Query, said: Sequence[tuple[str, Exchange]], made: SaidRows
) -> tuple[frozenset[str] | None, list[SaidRow]]:
    """Return the speakers of all candidates, and the candidates from windows.

    The candidates are the user's memories and some window exchanges. The speakers are None if there are no
    candidates. Runs on the shard's thread, because the ranking by words takes time, and because the shard knows which
    exchanges have a memory.
    """
    user_id, beside = query.user_id, query.beside
    rows = [
        row
        for row in _rows_of(user_id, said, made)
        if not repeats(row.exchange, query.text)
        and (beside is None or not beside.shows(row.session_id, row.message_ids))
    ]
    rows = matching_rows(shard.without_memory(user_id, rows), user_id, query.conditions)
    rows = worth_embedding(rows, questions(query.text))
    speakers = shard.speakers_of(user_id)
    names = {name for row in rows for name in row.exchange.speakers()}
    return (speakers or frozenset()) | names if rows else speakers, rows


def no_memories_of(shard: Shard, user_id: str, said: Sequence[tuple[str, Exchange]], made: SaidRows) -> list[Memory]:
    """Return the exchanges of `said` that have no memory, in their order, each as the memory that it may become."""
    return [as_memory(row, user_id) for row in shard.without_memory(user_id, _rows_of(user_id, said, made))]


def _rows_of(user_id: str, said: Sequence[tuple[str, Exchange]], made: SaidRows) -> list[SaidRow]:
    """Return the rows of the exchanges in which a user or an assistant has said something that is not blank."""
    rows = [made.row(user_id, session_id, exchange) for session_id, exchange in said if exchange.spoken]
    return [row for row in rows if row.text.strip()]
