"""Exchanges of short-term windows as search rows.

The row of an exchange is like the row of the memory that it may become: it has the same text, the same terms and the
same place in its session. So exchanges and memories are ranked on one scale.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Final

import numpy as np
import numpy.typing as npt

from schemas.exchanges import Exchange, render
from schemas.ids import event_id
from tables.search.candidates import Candidates, Numbers, previous
from tables.search.held import Sessions
from tables.search.recent import Recent
from tables.search.stated import Stated
from tables.search.terms import Counted, Terms, counted
from tables.search.text_store import session_number

#: The limit of the cache of terms in bytes, enough for about ten thousand exchanges. Keys are hashes, so it has no
#: texts.
TERMS_BYTES: Final = 16_000_000
_ENTRY_BYTES: Final = 400
#: The estimated bytes of one term: an integer in a list.
_WORD_BYTES: Final = 44


@dataclass(frozen=True, slots=True)
class SaidRow:
    """An exchange of a window. `id` is the id of the memory that it may become.

    `event_id` is the id of the event that would promote it.
    """

    session_id: str
    exchange: Exchange
    id: uuid.UUID
    event_id: uuid.UUID
    text: str
    counted: Counted

    @property
    def message_ids(self) -> tuple[str, ...]:
        return tuple(message.message_id for message in self.exchange.messages)


class SaidRows:
    """Makes search rows of exchanges. The terms of their texts are cached, in at most `most_bytes`."""

    def __init__(self, most_bytes: int = TERMS_BYTES) -> None:
        self._terms = Recent(most_bytes)

    def row(self, user_id: str, session_id: str, exchange: Exchange) -> SaidRow:
        text, identity = render(exchange), exchange.memory_id(user_id, session_id)
        return SaidRow(session_id, exchange, identity, event_id("promotion", identity), text, self._counted(text))

    def _counted(self, text: str) -> Counted:
        key = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        found: Counted | None = self._terms.get(key)
        if found is None:
            found = counted(text)
            self._terms.put(key, found, _ENTRY_BYTES + _WORD_BYTES * len(found.words))
        return found


def terms_of(rows: Sequence[SaidRow]) -> Terms:
    """Return the terms of the rows, in their order."""
    return Terms.joined([row.counted for row in rows])


def with_said(held: Candidates, sessions: Sessions, said: Sequence[SaidRow]) -> Candidates:
    """Return the candidates of a user's memories, followed by the exchanges in `said`.

    An exchange has the number -1 and the importance 0. `previous` is computed over memories and exchanges together,
    by their times.
    """
    n = len(said)
    created = np.array([row.exchange.started_at for row in said], np.int64)
    numbers = np.array([session_number(row.session_id) for row in said], np.uint64)
    return Candidates(
        seqs=np.concatenate([held.seqs, np.full(n, -1, np.int64)]),
        created_at=np.concatenate([held.created_at, created]),
        importance=np.concatenate([held.importance, np.zeros(n)]),
        last_accessed=np.concatenate([held.last_accessed, created]),
        pinned=np.concatenate([held.pinned, np.zeros(n, np.bool_)]),
        current=np.concatenate([held.current, np.ones(n, np.bool_)]),
        previous=_previous(
            np.concatenate([sessions.numbers, numbers]), np.concatenate([sessions.created_at, created])
        ),
        terms=held.terms.with_more(terms_of(said)),
        stated=held.stated.followed_by(Stated.of([row.counted.stated for row in said], created.tolist()), len(held)),
    )


def _previous(sessions: npt.NDArray[np.uint64], created_at: Numbers) -> Numbers:
    """Return the result of `previous` for rows that are not ordered by time."""
    order = np.argsort(created_at, kind="stable")
    before = previous(sessions[order])
    found = np.empty(len(order), np.int64)
    found[order] = np.where(before >= 0, order[before], -1)
    return found
