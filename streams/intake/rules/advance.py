"""Applies records to a session: exchanges close, leave the window, and are evaluated for promotion.

A late message is inserted at its time if no exchange that ended after that time is decided on. The undecided
exchanges are then cut again, as if the message had arrived in time. Otherwise the late message becomes an exchange of
its own.

A message that is older than the message before it is not late if the difference is within the allowed clock skew.
Then log order is taken as the order of speaking, and the message gets the time of the message before it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Final

from msgspec.structs import replace

from schemas.conversations import Role, SessionEnded, Silence
from schemas.exchanges import Emptied, Exchange, Message
from schemas.sessions import Session
from schemas.settings import MemorySettings
from streams.intake.rules.decision import Decision, RatingNeeded
from streams.intake.rules.exchanges import Limits, answered, cut, silence_closes
from streams.intake.rules.promotion import Promoter
from streams.intake.rules.session_changes import SessionChanges
from streams.intake.rules.summary_trigger_watch import TriggerWatch
from streams.intake.rules.summary_triggers import Triggers

#: Maximum number of exchanges that have left a session's window but whose message ids are still known.
KNOWN_EXCHANGES: Final = 450
#: An input of the session rules: a decoded record of `conversations`.
SessionInput = Message | SessionEnded | Silence


class RuleParameters:
    """The parameters of the session rules: limits from the settings, the promoter, and the summary triggers."""

    def __init__(self, memory: MemorySettings, promoter: Promoter, triggers: Triggers | None = None) -> None:
        self.limits = Limits.of(memory)
        self.shortest_silence = min(self.limits.gap_ms, self.limits.idle_ms)
        self.most_messages = self.limits.messages
        self.capacity = memory.capacity
        self.ttl_ms = memory.ttl_seconds * 1000
        self.skew_ms = memory.clock_skew_seconds * 1000
        self.promoter, self.triggers = promoter, triggers


_time = attrgetter("timestamp")


class Advance:
    """The working state of one call of `SessionRules.advance`: the session's fields while records are applied to it.

    The messages of each exchange, open or closed, are in time order. `_answered` is true if the open exchange has a
    message of an assistant.
    """

    __slots__ = (
        "_answered",
        "_asked",
        "_due",
        "_emptied",
        "_ended",
        "_exchanges",
        "_first",
        "_first_ends",
        "_horizon",
        "_known",
        "_known_from",
        "_last_at",
        "_left",
        "_left_at",
        "_missing",
        "_new",
        "_next",
        "_offset",
        "_open",
        "_out",
        "_pending",
        "_rules",
        "_session",
        "_stored",
        "_unknown",
    )

    def __init__(
        self,
        rules: RuleParameters,
        session: Session,
        known: set[str],
        exchange: Callable[[int], Exchange],
        emptied: Callable[[int], Emptied | None],
    ) -> None:
        self._rules, self._session, self._known, self._stored = rules, session, known, exchange
        self._emptied, self._known_from, self._horizon = emptied, session.known, session.horizon
        #: `_left`: the end and the message ids of exchanges that left the window, by exchange number. `_unknown`: the
        #: numbers of exchanges whose message ids are now dropped.
        self._left: dict[int, Emptied] = {}
        self._unknown: list[int] = []
        self._out = SessionChanges(session)
        self._new: dict[int, Exchange] = {}
        self._offset, self._last_at = session.offset, session.last_at
        self._open = list(session.open)
        self._answered = answered(self._open)
        self._first, self._next = session.first, session.next
        self._missing, self._left_at = set(session.missing), session.left_at
        self._first_ends: int | None = None
        self._pending = list(session.pending)
        self._asked: dict[int, Exchange | None] = dict.fromkeys(session.asked)
        self._exchanges, self._ended = session.exchanges, session.ended
        self._due = None if rules.triggers is None else self._watch(rules.triggers)

    def _watch(self, triggers: Triggers) -> TriggerWatch:
        of = self._session
        return TriggerWatch(
            triggers, self._said_since, self._open_from, self._out.summaries, of.said, of.summed_up, of.day_ends
        )

    def through(self, records: Iterable[tuple[int, SessionInput]]) -> SessionChanges:
        out, before = self._out, self._session
        for offset, record in records:
            if offset <= self._offset:
                out.replayed += 1
                continue
            self._offset = offset
            if type(record) is Message:
                self._hear(record)
            elif isinstance(record, SessionEnded):
                self._last_at = max(self._last_at, record.timestamp)
                self._end(self._last_at)
            else:
                self._be_silent_until(record.timestamp)
        due = self._due
        out.session = Session(
            before.user_id,
            before.session_id,
            self._offset,
            self._last_at,
            tuple(self._open),
            self._first,
            self._next,
            tuple(sorted(self._missing)),
            self._left_at,
            tuple(self._pending),
            tuple(self._asked),
            self._exchanges,
            self._ended,
            before.said if due is None else due.said,
            before.summed_up if due is None else due.summed_up,
            before.day_ends if due is None else due.day_ends,
            before.lead,
            self._known_from,
            self._horizon,
        )
        self._due = None  # break the reference cycle, so that this object does not wait for the garbage collector
        out.closed = list(self._new.values())
        if self._asked:
            self._hold_what_is_asked()
        if before.missing or before.asked or self._missing or self._asked:
            held = dict.fromkeys((*before.window, *before.asked))
            out.gone = [seq for seq in held if (seq < self._first or seq in self._missing) and seq not in self._asked]
        else:
            out.gone = list(range(before.first, min(self._first, before.next)))
        out.left, out.unknown = self._left, self._unknown
        return out

    def _hold_what_is_asked(self) -> None:
        """Keep the exchanges whose rating is pending.

        If their number exceeds the window's capacity, decide on the oldest of them without a rating.
        """
        out = self._out
        asked = {seq: exchange or self._stored(seq) for seq, exchange in self._asked.items()}
        while len(asked) > self._rules.capacity:
            oldest = next(iter(asked))
            del self._asked[oldest]
            self._take(self._rules.promoter.rated(asked.pop(oldest), None))
        out.session = out.session._replace(asked=tuple(asked))
        out.questions = list(asked.values())
        out.closed += [held for seq, held in asked.items() if seq >= self._session.next and seq not in self._new]

    def _hear(self, message: Message) -> None:
        out, known, identity = self._out, self._known, message.message_id
        if identity in known or message.timestamp <= self._horizon:
            out.duplicates += 1
            return
        out.messages += 1
        known.add(identity)
        opened, at = self._open, message.timestamp
        silent = at - (opened[-1].timestamp if opened else self._said_last())
        if -self._rules.skew_ms <= silent < 0:  # within the allowed clock skew: log order is the order of speaking
            at -= silent
            message, silent = replace(message, timestamp=at), 0
            out.reordered += 1
        if silent < 0:
            self._place(message)
        else:  # in time order
            rules, role = self._rules, message.role
            if silent >= rules.shortest_silence:
                self._be_silent_until(at)
            if (self._answered and role is Role.USER) or len(opened) >= rules.most_messages:
                self._close()
            opened.append(message)
            if role is Role.ASSISTANT:
                self._answered = True
            if at > self._last_at:
                self._last_at = at
            self._ended = False
        if self._due is not None:
            self._due.hear(message)

    def _open_from(self) -> int:
        return self._open[0].timestamp if self._open else 0

    def _said_since(self, moment: int) -> list[Message]:
        """Return the messages of the window that are newer than `moment`, in time order."""
        said: list[Sequence[Message]] = [self._open]
        for seq in range(self._next - 1, self._first - 1, -1):
            if seq in self._missing:
                continue
            messages = self._exchange(seq).messages
            if messages[-1].timestamp <= moment:
                break
            said.append(messages)
        found = [message for messages in reversed(said) for message in messages if message.timestamp > moment]
        found.sort(key=_time)
        return found

    def _said_last(self) -> int:
        """Return the time of the newest message in the window (epoch ms); 0 if the window is empty."""
        if self._open:
            return self._open[-1].timestamp
        for seq in range(self._next - 1, self._first - 1, -1):
            if seq not in self._missing:
                return self._exchange(seq).ended_at
        return 0

    def _be_silent_until(self, moment: int) -> None:
        """Apply a silence up to `moment` (epoch ms). It may close the open exchange, and end the day and session."""
        if silence_closes(self._open, moment, self._rules.limits):
            self._close()
        if self._due is not None:
            self._due.reach(moment)
        idle_ms = self._rules.limits.idle_ms
        if not self._ended and self._last_at and moment - self._last_at >= idle_ms:
            self._end(self._last_at + idle_ms)

    def _place(self, message: Message) -> None:
        """Insert a late message at its time.

        If an exchange that ended after that time is already decided on, or if the session has no undecided messages,
        the late message becomes an exchange of its own.
        """
        window = [seq for seq in range(self._first, self._next) if seq not in self._missing]
        decided = len(window)
        while decided and window[decided - 1] in self._pending:
            decided -= 1
        undecided = window[decided:]
        said = [earlier for seq in undecided for earlier in self._exchange(seq).messages] + self._open
        decided_up_to = self._exchange(window[decided - 1]).ended_at if decided else self._left_at
        if not said or message.timestamp < decided_up_to:
            self._out.late += 1
            self._out.exchanges += 1
            self._keep_late(message)
            return
        said.insert(bisect_right(said, message.timestamp, key=lambda earlier: earlier.timestamp), message)
        self._cut_again(undecided, said)

    def _keep_late(self, message: Message) -> None:
        exchange = self._keep((message,))
        self._leave_by(exchange)
        if exchange.spoken:
            forced = self._rules.promoter.at_close(exchange)
            self._take(forced or self._rules.promoter.score(exchange, self._exchanges, leaving=True))

    def _cut_again(self, undecided: list[int], said: list[Message]) -> None:
        """Replace the `undecided` exchanges and the open one by new exchanges, cut from the messages `said`.

        The new exchanges get new numbers, because the exchange with a given number must never change. So after a
        crash, a session's row matches the exchange rows that it names.
        """
        *over, self._open = cut(said, self._rules.limits)
        self._answered = answered(self._open)
        self._missing.update(undecided)
        for seq in undecided:
            self._new.pop(seq, None)
        self._pending = [seq for seq in self._pending if seq not in self._missing]
        self._exchanges -= len(undecided)
        grown = len(over) - len(undecided)
        self._out.exchanges += max(0, grown)
        for messages in over:
            self._close_as(tuple(messages), grown=grown > 0)

    def _close(self) -> None:
        messages = tuple(self._open)
        self._open.clear()
        self._answered = False
        self._out.exchanges += 1
        self._close_as(messages, grown=True)

    def _close_as(self, messages: tuple[Message, ...], *, grown: bool) -> None:
        exchange = self._keep(messages)
        self._leave_by(exchange)
        if not exchange.spoken:
            return
        self._exchanges += 1
        promoter = self._rules.promoter
        verdict = promoter.at_close(exchange)
        if verdict is not None:
            self._take(verdict)
        else:
            self._pending.append(exchange.seq)
        if grown and self._pending and promoter.rolls(self._exchanges):
            self._score(self._exchange(self._pending.pop(0)), leaving=False)

    def _keep(self, messages: tuple[Message, ...]) -> Exchange:
        """Add a new exchange to the window, and return it."""
        exchange = self._new[self._next] = Exchange(self._next, messages)
        self._next += 1
        return exchange

    def _leave_by(self, newest: Exchange) -> None:
        """Remove the oldest exchanges while the window is over its capacity, or while the oldest one has expired.

        An exchange has expired if it ended `ttl_ms` or more before the end of `newest`.
        """
        expiry = newest.ended_at - self._rules.ttl_ms
        if (
            self._first_ends is not None
            and self._first_ends > expiry
            and self._next - self._first <= self._rules.capacity
            and not self._missing
        ):
            return
        while self._first < newest.seq:
            if self._first in self._missing:
                self._missing.remove(self._first)
                self._first += 1
                continue
            if self._first_ends is None:
                self._first_ends = self._exchange(self._first).ended_at
            held = self._next - self._first - len(self._missing)
            if self._first_ends > expiry and held <= self._rules.capacity:
                return
            leaving = self._exchange(self._first)
            if self._first in self._pending:
                self._pending.remove(self._first)
                self._score(leaving, leaving=True)
            self._left_at = max(self._left_at, leaving.ended_at)
            self._left[self._first] = leaving.emptied()
            self._new.pop(self._first, None)
            self._first += 1
            self._first_ends = None
            if self._first - self._known_from > KNOWN_EXCHANGES:
                self._know_no_longer(self._known_from)

    def _know_no_longer(self, seq: int) -> None:
        """Drop the message ids of an exchange that has left the window.

        From now on, every message that is dated up to the end of this exchange counts as a repetition.
        """
        self._known_from = seq + 1
        emptied = self._left.pop(seq, None)
        if emptied is None and (emptied := self._emptied(seq)) is not None:
            self._unknown.append(seq)
        if emptied is not None:
            self._horizon = max(self._horizon, emptied.ended_at)
            self._known.difference_update(emptied.message_ids)

    def _end(self, at: int) -> None:
        if self._open:
            self._close()
        for seq in self._pending:
            self._score(self._exchange(seq), leaving=True)
        self._pending.clear()
        self._exchanges, self._ended = 0, True
        if self._out.ended_at is None:
            self._out.ended_at = at

    def _score(self, exchange: Exchange, *, leaving: bool) -> None:
        self._take(self._rules.promoter.score(exchange, self._exchanges, leaving=leaving))

    def _take(self, verdict: Decision | RatingNeeded) -> None:
        if isinstance(verdict, RatingNeeded):
            self._asked[verdict.exchange.seq] = verdict.exchange
        else:
            self._out.decisions.append(verdict)
            self._out.decided_by.append(self._offset)

    def _exchange(self, seq: int) -> Exchange:
        return self._new.get(seq) or self._stored(seq)
