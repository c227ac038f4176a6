"""Short-term agent: reads `conversations`, updates the windows of sessions, and promotes exchanges to `long-term`.

The records of a batch are grouped by session. Pure rules compute each session's new value once per batch, and the
resulting events are sent together. There is no `await` for each message, because that would be slow.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from bisect import bisect_left
from collections.abc import Awaitable, Callable, Collection, Sequence
from itertools import zip_longest
from operator import attrgetter
from typing import Any

import msgspec
import orjson

from schemas.conversations import ChatMessage, ConversationRecord, Silence
from schemas.events import Promotion
from schemas.exchanges import Exchange, Message, render
from schemas.ids import event_id
from schemas.plain_messages import plain_message
from schemas.record_values import conversation_record, json_object
from schemas.sessions import Session
from schemas.settings import MemorySettings
from schemas.times import now_ms
from schemas.topics import CLOSED_AT_HEADER, SOURCES_HEADER, Headers
from streams.forgetting.forgetters import Named
from streams.intake.clock_skew import ClockSkew
from streams.intake.idle_tracker import IdleTracker
from streams.intake.ratings import Key, Ratings
from streams.intake.rules.advance import SessionInput
from streams.intake.rules.decision import Decision
from streams.intake.rules.session import SessionRules
from streams.intake.rules.session_changes import SessionChanges
from streams.intake.rules.summary_triggers import SummaryWanted
from streams.kafka.event_log import EventLog
from streams.kafka.inbox import Inbox
from streams.runtime.clock import Clock, ingested
from streams.summaries.requests import request_of
from streams.telemetry.activity.message_flow import Flow
from streams.telemetry.metrics import Metrics
from streams.telemetry.spans import NoSpans, Spans
from tables.windows.short_term import ShortTermStore

log = logging.getLogger(__name__)

_OFFSET = attrgetter("offset")

#: Callback for the end of a session. Arguments: the partition, the session, its end (epoch ms of event time).
SessionEnd = Callable[[int, Session, int], None]


def decode(record: Any) -> ConversationRecord:
    """Decode a record. A message without a timestamp gets the Kafka record's timestamp. Raises `BadRecord`."""
    fields = json_object(record.value)
    if "timestamp" not in fields and "created_at" not in fields:
        fields["timestamp"] = record.timestamp
    return conversation_record(fields)


class SessionRecord(msgspec.Struct, frozen=True, gc=False):
    """A decoded record of `conversations`. Its message, session end or silence is in `told`."""

    user_id: str
    session_id: str
    told: SessionInput


def session_record(record: Any) -> SessionRecord:
    """Decode a record: a plain message with msgspec, which is faster, or else with `decode`. Raises `BadRecord`."""
    plain = plain_message(record.value)
    if plain is not None:
        return SessionRecord(*plain)
    said = decode(record)
    return SessionRecord(said.user_id, said.session_id, Message.of(said) if isinstance(said, ChatMessage) else said)


class ShortTermAgent:
    """Keeps the windows of a worker's sessions, and promotes exchanges from them."""

    def __init__(
        self,
        *,
        store: ShortTermStore,
        rules: SessionRules,
        event_log: EventLog,
        inbox: Inbox[SessionRecord],
        metrics: Metrics,
        clock: Clock,
        ratings: Ratings | None,
        idle: IdleTracker | None = None,
        flow: Flow | None = None,
        now: Callable[[], int] = now_ms,
        spans: Spans = NoSpans(),  # noqa: B008 - it is a value
    ) -> None:
        self._spans = spans
        self._store, self._rules, self._event_log = store, rules, event_log
        self._inbox, self._metrics, self._clock = inbox, metrics, clock
        self._ratings, self._now = ratings, now
        self.idle = IdleTracker() if idle is None else idle
        self._flow = Flow() if flow is None else flow
        self._skew = ClockSkew(metrics.clock_skew)
        self._at_end: list[SessionEnd] = []

    def when_ended(self, call: SessionEnd) -> None:
        """Register a callback for ended sessions. It is called after the session is saved, before any `await`."""
        self._at_end.append(call)

    async def handle(self, partition: int, records: Sequence[Any]) -> Awaitable[Any] | None:
        """Handle a fetched batch of records. Return an awaitable if the batch needs ratings, else None.

        The caller must await the awaitable before the batch counts as processed.
        """
        by_session: dict[tuple[str, str], list[tuple[int, SessionInput]]] = {}
        leads: dict[tuple[str, str], int] = {}
        now, skew_ms = self._now(), self._rules.skew_ms
        for record, said in self._inbox.read(records):
            ids, told = (said.user_id, said.session_id), said.told
            if record.timestamp is not None:
                if record.headers:
                    self._skew.note(record.headers, told.timestamp, record.timestamp)
                if told.timestamp - record.timestamp > skew_ms:
                    told = self._as_of_its_record(told, record.timestamp)
            of_session = by_session.get(ids)
            if of_session is None:
                by_session[ids] = [(record.offset, told)]
            else:
                of_session.append((record.offset, told))
            appended = record.timestamp
            if (told.timestamp > now or appended is None or told.timestamp > appended) and type(told) is Message:
                leads[ids] = max(leads.get(ids, 0), told.timestamp - ingested(appended, now))
        if self._flow.open:
            self._flow.heard(by_session)
        # No `await` until the batch is in the windows and its events are queued: a commit or a rebalance in between
        # would see only a part of the batch.
        advanced = [
            self._advance(partition, *ids, of_session, leads.get(ids, 0)) for ids, of_session in by_session.items()
        ]
        self._follow(partition, advanced, records)
        for outcome in advanced:
            if outcome.ended_at is not None:
                for call in self._at_end:
                    call(partition, outcome.session, outcome.ended_at)
        await self._event_log.deliver()
        return self._ask(partition, advanced)

    def _as_of_its_record(self, told: SessionInput, appended: int) -> SessionInput:
        """Give an input whose producer's clock is ahead the timestamp of its Kafka record. `Silence` is unchanged."""
        if isinstance(told, Silence):
            return told
        self._metrics.clock_corrected.labels("ahead").inc()
        if isinstance(told, Message):
            return msgspec.structs.replace(told, timestamp=appended)
        return told.model_copy(update={"timestamp": appended})

    def _save(self, partition: int, changes: SessionChanges) -> None:
        self._store.save(partition, changes.session, changes.closed, changes.gone, changes.left, changes.unknown)

    def _follow(self, partition: int, outcomes: Sequence[SessionChanges], records: Sequence[Any] = ()) -> None:
        """Count the decisions, promote the kept exchanges, and request the triggered summaries.

        `records` are the records that caused the decisions, in log order; empty if a model's answer caused them.
        """
        self._count(outcomes)
        if self._flow.open:
            self._flow.followed(outcomes)
        for outcome in outcomes:
            for decision, offset in zip_longest(outcome.decisions, outcome.decided_by):
                if decision.kept:
                    headers: Headers = ()
                    if offset is not None:
                        record = records[bisect_left(records, offset, key=_OFFSET)]
                        headers = closed_at(record)
                        if self._spans.on:
                            headers = [*headers, *self._spans.passed_on(record)]
                    self._promote(outcome.session, decision, headers)
            for wanted in outcome.summaries:
                self._have_summed_up(partition, outcome.session, wanted)

    def _ask(self, partition: int, outcomes: Sequence[SessionChanges]) -> Awaitable[Any] | None:
        """Request the ratings that the decisions need.

        Return an awaitable that is done when each new request was tried once; None if there are no new requests.
        """
        if self._ratings is None:
            return None
        tries = []
        for outcome in outcomes:
            user_id, session_id = outcome.session.user_id, outcome.session.session_id
            for exchange in outcome.questions:
                first_try = self._ratings.ask((partition, user_id, session_id, exchange.seq), exchange)
                if first_try is not None:
                    tries.append(first_try)
        return asyncio.wait(tries) if tries else None

    async def answered(self, key: Key, rating: int | None) -> None:
        """Decide on an exchange whose rating was requested. `rating` is None if the model gave none."""
        partition, user_id, session_id, seq = key
        session = self._store.session(partition, user_id, session_id)
        if seq not in session.asked:
            return  # the session's partition has moved to another worker, or the session was removed
        outcome = self._rules.answered(session, self._store.exchange(partition, session, seq), rating)
        self._save(partition, outcome)
        self._follow(partition, [outcome])
        await self._event_log.deliver()

    def _advance(
        self, partition: int, user_id: str, session_id: str, records: list[tuple[int, SessionInput]], lead: int
    ) -> SessionChanges:
        """Apply records to a session. `lead` is the maximum of message time minus Kafka record time (ms)."""
        store = self._store
        session = store.session(partition, user_id, session_id)
        outcome = self._rules.advance(
            session,
            records,
            known=store.message_ids(partition, session),
            exchange=store.exchanges_of(partition, session),
            emptied=store.emptied_of(partition, session),
        )
        if outcome.session.offset != session.offset:  # equal: the session already included all these records
            if lead > session.lead:
                outcome.session = outcome.session._replace(lead=lead)
            self._save(partition, outcome)
            self.idle.seen(partition, outcome.session)
            self._clock.observe(outcome.session.last_at)
        return outcome

    def _promote(self, session: Session, decision: Decision, headers: Headers) -> None:
        heard = decision.heard or decision.exchange
        if sources := heard.unusual_sources():
            headers = [*headers, (SOURCES_HEADER, orjson.dumps(sources))]
        self._event_log.append(promotion(session, decision), headers)

    def _have_summed_up(self, partition: int, session: Session, wanted: SummaryWanted) -> None:
        """Request a summary.

        If the user asked for it, it covers the messages of the day from all sessions, not only from this one.
        """
        triggers = self._rules.triggers
        assert triggers is not None, "only triggers request summaries"
        others: list[tuple[str, Message]] = []
        if wanted.reason == "manual":
            known = {message.message_id for message in wanted.messages}
            whole = self._store.said_on(partition, session.user_id, wanted.day, triggers.timezone)
            others = [said for said in whole if said[1].message_id not in known]
        request = request_of(session, wanted, others)
        self._event_log.append_request(session.user_id, request)

    def _count(self, outcomes: Sequence[SessionChanges]) -> None:
        metrics = self._metrics
        messages = exchanges = duplicates = late = reordered = 0
        decisions: dict[tuple[bool, str], int] = {}
        for outcome in outcomes:
            messages += outcome.messages
            exchanges += outcome.exchanges
            duplicates += outcome.duplicates
            late += outcome.late
            reordered += outcome.reordered
            for decision in outcome.decisions:
                what = decision.kept, decision.parts.reason
                decisions[what] = decisions.get(what, 0) + 1
        metrics.messages.inc(messages)
        metrics.exchanges.inc(exchanges)
        metrics.duplicates.inc(duplicates)
        metrics.late.inc(late)
        if reordered:
            metrics.clock_corrected.labels("behind").inc(reordered)
        for (kept, reason), count in decisions.items():
            metrics.decisions.labels("promoted" if kept else "dropped", reason).inc(count)

    async def note_silence(self, memory: MemorySettings) -> None:
        """Write a `Silence` record for each session in which silence has an effect.

        The effect is to close an exchange, to end the session, or to end the session's day.
        """
        for silence in self.idle.due(memory, self._store.session, self._clock.now()):
            self._event_log.append_silence(silence)
        await self._event_log.deliver()

    def forget_expired(self, memory: MemorySettings) -> None:
        """Drop the sessions that `IdleTracker.expired` returns. Their keys get tombstones in the changelogs."""
        for partition, user_id, session_id in self.idle.expired(memory, self._clock.passed()):
            session = self._store.session(partition, user_id, session_id)
            if session.asked:  # ratings of its exchanges are pending: try to drop the session again later
                self.idle.seen(partition, session)
            else:
                self._store.drop(partition, session)

    def forget_user(self, partition: int, user_id: str, until: int) -> None:
        """Remove the user's messages up to `until` (epoch ms) from the windows, so that none is promoted.

        Messages dated up to `Session.lead` ms after `until` are removed too. A timestamp may be ahead of its Kafka
        record by that much, so such a message may have been written before `until`.
        """
        store = self._store
        self._flow.forget(user_id)
        store.note_forgotten(partition, user_id, until)
        for session in store.of_user(partition, user_id):
            outcome = self._rules.forgotten(
                session, until, store.exchanges_of(partition, session), store.emptied_of(partition, session)
            )
            self._save(partition, outcome)
            store.forget_message_ids(partition, session)

    def memories_of(self, partition: int, user_id: str) -> list[Named]:
        """Return the memories that the user's closed exchanges have become or could still become."""
        return [
            (user_id, held.memory_id(user_id, session.session_id), held.started_at)
            for session in self._store.of_user(partition, user_id)
            for held in self._held(partition, session)
        ]

    def forget_memories(self, partition: int, user_id: str, ids: Collection[uuid.UUID]) -> None:
        """Remove the exchanges of these memories from the user's windows, whether they were promoted or not.

        The ids of their messages stay known, so that a message that is sent again does not open another exchange.
        """
        self._flow.forget(user_id)
        for session in self._store.of_user(partition, user_id):
            held = self._held(partition, session)
            seqs = {one.seq for one in held if one.memory_id(user_id, session.session_id) in ids}
            if seqs:
                exchange = self._store.exchanges_of(partition, session)
                outcome = self._rules.without(session, seqs, exchange)
                self._store.message_ids(partition, session)
                self._save(partition, outcome)

    def _held(self, partition: int, session: Session) -> list[Exchange]:
        """Return the session's closed exchanges: those in its window, and those whose ratings are pending."""
        return list(map(self._store.exchanges_of(partition, session), sorted(session.named)))

    def start_over(self, partition: int) -> bool:
        """Drop the session rows of a partition whose log is read from its start. Return whether there were any.

        After a broker lost all its data, rows that a worker was still sending can reach the new, empty log. The
        offsets in these rows belong to the former log. With them, records of the new log would be skipped.
        """
        former = list(self._store.of_partition(partition))
        for session in former:
            self._store.drop(partition, session)
            self.idle.forget(partition, session)
        return bool(former)

    async def recovered(self) -> None:
        """Measure silence from now on, and request pending ratings again. Call after the tables have recovered."""
        if lost := self._store.recovered():
            self._metrics.lost_exchanges.inc(lost)
            log.warning(
                "%d window exchanges are missing from their changelog; the sessions continue without them", lost
            )
        self.idle.clear()
        asked: list[tuple[int, Session, Exchange]] = []
        for partition, session in self._store.all_sessions():
            self.idle.seen(partition, session)
            self._clock.observe(session.last_at)
            asked += [(partition, session, exchange) for exchange in self._store.asked_of(partition, session)]
        if self._ratings is not None:
            self._ratings.forget()
        for partition, session, exchange in asked:
            key = partition, session.user_id, session.session_id, exchange.seq
            if self._ratings is not None:
                self._ratings.ask(key, exchange)
            else:  # another worker requested the rating from a model, but this worker has no model
                await self.answered(key, self._rules.promoter.rating_of(exchange))


def closed_at(record: Any) -> Headers:
    """Return the header with the time of the record that caused a promotion; empty if it has no timestamp."""
    timestamp = record.timestamp
    return [] if timestamp is None else [(CLOSED_AT_HEADER, str(timestamp).encode())]


def promotion(session: Session, decision: Decision) -> Promotion:
    """Return the event that makes an exchange a memory. The same exchange always gives the same ids."""
    exchange = decision.exchange
    heard = decision.heard or exchange
    identity = exchange.memory_id(session.user_id, session.session_id)
    return Promotion(
        event_id=event_id("promotion", identity),
        user_id=session.user_id,
        timestamp=exchange.ended_at,
        memory_id=identity,
        session_id=session.session_id,
        agent_id=exchange.agent_id,
        text=render(heard),
        message_ids=[message.message_id for message in exchange.messages],
        importance=decision.importance,
        started_at=exchange.started_at,
        parts=decision.parts,
        speakers=heard.speakers(),
        metadata=heard.metadata() or None,
        pinned=decision.pinned,
    )
