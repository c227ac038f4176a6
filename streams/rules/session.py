"""How a session's window goes on with what was said: exchanges close, leave, and are decided on.

A pure function of the session's value, its window and the records, in the order of the log. It looks at event
times only, so a replay of the same records comes to the same decisions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from schemas.messages import ChatMessage, ConversationRecord, Exchange, Message, SessionEnded
from schemas.settings import MemorySettings
from streams.rules.exchanges import Limits, silence_closes, starts_new
from streams.rules.promotion import Decision, Promoter
from tables.short_term import Session


@dataclass(slots=True)
class Outcome:
    """What some records made of a session."""

    session: Session
    closed: list[Exchange] = field(default_factory=list)
    gone: list[int] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    heard: set[str] = field(default_factory=set)
    left: set[str] = field(default_factory=set)
    messages: int = 0
    exchanges: int = 0
    duplicates: int = 0
    replayed: int = 0


class SessionRules:
    """The rules of the settings, ready to be applied to any session."""

    def __init__(self, memory: MemorySettings, promoter: Promoter) -> None:
        self._limits = Limits.of(memory)
        self._capacity = memory.capacity
        self._ttl_ms = memory.ttl_seconds * 1000
        self._promoter = promoter

    def advance(
        self,
        session: Session,
        records: Iterable[tuple[int, ConversationRecord]],
        *,
        known: frozenset[str] | set[str],
        exchange: Callable[[int], Exchange],
    ) -> Outcome:
        """The session after `records`, which are (offset, record) in the order of the log.

        `known` are the ids of the messages that it holds; `exchange` gives a closed exchange of its window.
        """
        return _Advance(self, session, known, exchange).through(records)


class _Advance:
    """The working state of one `advance`: fields of the session that change from record to record."""

    def __init__(
        self,
        rules: SessionRules,
        session: Session,
        known: frozenset[str] | set[str],
        exchange: Callable[[int], Exchange],
    ) -> None:
        self._limits, self._promoter = rules._limits, rules._promoter
        self._capacity, self._ttl_ms = rules._capacity, rules._ttl_ms
        self._session, self._known, self._stored = session, known, exchange
        self._new: dict[int, Exchange] = {}
        self._heard: set[str] = set()
        self._left: set[str] = set()
        self._out = Outcome(session)
        self._offset, self._last_at = session.offset, session.last_at
        self._open: list[Message] = list(session.open)
        self._first, self._next = session.first, session.next
        self._pending: list[int] = list(session.pending)
        self._exchanges, self._ended = session.exchanges, session.ended

    def through(self, records: Iterable[tuple[int, ConversationRecord]]) -> Outcome:
        for offset, record in records:
            if offset <= self._offset:
                self._out.replayed += 1
                continue
            self._offset = offset
            if isinstance(record, ChatMessage):
                self._hear(Message.of(record))
            elif isinstance(record, SessionEnded):
                self._last_at = max(self._last_at, record.timestamp)
                self._end()
            else:
                self._be_silent_until(record.timestamp)
        out = self._out
        out.session = Session(
            self._session.user_id,
            self._session.session_id,
            self._offset,
            self._last_at,
            tuple(self._open),
            self._first,
            self._next,
            tuple(self._pending),
            self._exchanges,
            self._ended,
        )
        out.closed = list(self._new.values())
        out.heard, out.left = self._heard, self._left
        return out

    def _hear(self, message: Message) -> None:
        if self._holds(message.message_id):
            self._out.duplicates += 1
            return
        self._be_silent_until(message.timestamp)
        if starts_new(self._open, message, self._limits):
            self._close()
        self._open.append(message)
        self._heard.add(message.message_id)
        self._left.discard(message.message_id)
        self._last_at = max(self._last_at, message.timestamp)
        self._ended = False
        self._out.messages += 1

    def _be_silent_until(self, moment: int) -> None:
        """Nothing was said up to `moment` (epoch ms)."""
        if silence_closes(self._open, moment, self._limits):
            self._close()
        if not self._ended and self._last_at and moment - self._last_at >= self._limits.idle_ms:
            self._end()

    def _close(self) -> None:
        exchange = Exchange(self._next, tuple(self._open))
        self._open.clear()
        self._new[exchange.seq] = exchange
        self._out.exchanges += 1
        self._next += 1
        self._leave_by(exchange)
        if not exchange.spoken:
            return
        self._exchanges += 1
        decision = self._promoter.at_close(exchange)
        if decision is not None:
            self._out.decisions.append(decision)
        else:
            self._pending.append(exchange.seq)
        if self._pending and self._promoter.rolls(self._exchanges):
            self._score(self._pending.pop(0), leaving=False)

    def _leave_by(self, newest_exchange: Exchange) -> None:
        """Exchanges leave the window by capacity and, as seen from the newest one, by expiry."""
        expiry = newest_exchange.ended_at - self._ttl_ms
        while self._first < newest_exchange.seq and (
            self._next - self._first > self._capacity or self._exchange(self._first).ended_at <= expiry
        ):
            if self._first in self._pending:
                self._pending.remove(self._first)
                self._score(self._first, leaving=True)
            ids = {message.message_id for message in self._exchange(self._first).messages}
            self._left |= ids
            self._heard -= ids
            if self._new.pop(self._first, None) is None:
                self._out.gone.append(self._first)
            self._first += 1

    def _end(self) -> None:
        if self._open:
            self._close()
        for seq in self._pending:
            self._score(seq, leaving=True)
        self._pending.clear()
        self._exchanges, self._ended = 0, True

    def _score(self, seq: int, *, leaving: bool) -> None:
        self._out.decisions.append(self._promoter.score(self._exchange(seq), self._exchanges, leaving=leaving))

    def _holds(self, message_id: str) -> bool:
        return message_id in self._heard or (message_id in self._known and message_id not in self._left)

    def _exchange(self, seq: int) -> Exchange:
        return self._new.get(seq) or self._stored(seq)
