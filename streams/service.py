"""What a memory can be asked and told, whichever way in: the use cases, over stores, an event log and a clock."""

from __future__ import annotations

import asyncio
import sys
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import date
from typing import Concatenate, NamedTuple, ParamSpec, Protocol, TypeVar

from schemas.errors import (
    BrokerUnavailable,
    ConsistencyTokenError,
    MemoryNotFound,
    NotReady,
    ShardComingBack,
    ShardNotHere,
)
from schemas.events import LongTermEvent, SummaryRequest
from schemas.exchanges import Exchange, Message
from schemas.lifecycle import wanted_states
from schemas.memories import SHORT_TERM, Memory, SearchHit, State
from schemas.places import Place
from schemas.rights import Right, not_allowed
from schemas.settings import Settings
from schemas.sources import any_covered, sources_in
from schemas.times import day_of, now_ms
from schemas.topics import Topics, partition_of
from streams.intake.rules.explaining import Explainer, Explanation
from streams.intake.rules.importance import Importance
from streams.kafka.clients.broker import NOT_ALLOWED
from streams.kafka.event_log import EventLog
from streams.memory.agent import LongTermAgent
from streams.memory.analytics import AnalyticsJob
from streams.memory.cleanup import CleanupJob
from streams.memory.read_your_writes import ReadYourWrites
from streams.memory.reembedding import Reembedder
from streams.recall.search import Hits, Query, Recall, prompt_text
from streams.recall.windows import ShownWindow
from streams.runtime.clock import Clock
from streams.shards.owned import OwnedShards
from streams.shards.restore.asked_checkpoints import AskedCheckpoints
from streams.shards.restore.checkpoint_job import CheckpointJob
from streams.summaries.agent import SummariesAgent
from streams.telemetry.metrics import Metrics
from streams.telemetry.recovery_progress import Behind, seconds_left
from streams.telemetry.spans import Spans
from streams.worker.activity import Activity
from tables.analysts.copy import Copy
from tables.memories.items import is_expired
from tables.memories.shard import Shard
from tables.summaries.pending_summaries import PendingSummaries
from tables.windows.session_notes import Note
from tables.windows.sessions import Session
from tables.windows.short_term import ShortTermStore, unexpired

P = ParamSpec("P")
T = TypeVar("T")

#: A request waits this long for a shard that is being opened, or a broker that does not answer.
WAIT_SECONDS = 10.0

NOT_HERE = "its partition is on another worker, or moving; ask again"


class Health(Protocol):
    """How the worker is in which the service is."""

    @property
    def recovered(self) -> bool:
        """Whether the windows are back."""

    @property
    def refusal(self) -> str:
        """Why the broker lets us not in any more; empty where it does, or is not there."""

    @property
    def url(self) -> str:
        """Where other workers reach this one."""

    def not_ready(self) -> list[str]:
        """Why the worker is not ready; empty when it is."""

    def warnings(self) -> list[str]:
        """What is amiss, though the worker works."""

    def behind(self) -> list[Behind]:
        """What is not back yet, by partition, how far it is, and how long it will take."""

    def lag(self) -> dict[str, int]:
        """Records that are not committed, by topic."""


class WindowExchange(NamedTuple):
    """An exchange of a session's window, and whether it can still go on."""

    exchange: Exchange
    open: bool


class OfSource(NamedTuple):
    """Ids of what one source had a part in; `exchanges` are those of windows that are no memories."""

    memories: list[uuid.UUID]
    exchanges: list[uuid.UUID]
    notes: list[uuid.UUID]


@dataclass(frozen=True, slots=True)
class Context:
    """What an assistant needs before it answers."""

    exchanges: list[WindowExchange]
    notes: list[Note]
    hits: list[SearchHit]
    prompt: str
    behind: Sequence[Behind] = ()


class MemoryService:
    """For this worker's users; what is asked about others raises `ShardNotHere`."""

    def __init__(
        self,
        *,
        settings: Settings,
        topics: Topics,
        clock: Clock,
        metrics: Metrics,
        event_log: EventLog,
        spans: Spans,
        effects: ReadYourWrites,
        health: Health,
        windows: ShortTermStore,
        pending_summaries: PendingSummaries,
        shards: OwnedShards,
        long_term: LongTermAgent,
        summaries: SummariesAgent,
        recall: Recall,
        explainer: Explainer,
        cleanup: CleanupJob,
        analytics: AnalyticsJob,
        reembedder: Reembedder,
        live: Activity,
        checkpoints: CheckpointJob | None = None,
    ) -> None:
        self.settings, self.topics, self.clock, self.metrics = settings, topics, clock, metrics
        self.importance = Importance(settings.memory)
        self.health, self.windows, self.pending_summaries, self.shards = health, windows, pending_summaries, shards
        self.summaries, self.recall, self.explainer = summaries, recall, explainer
        self.cleanup, self.reembedder, self.live = cleanup, reembedder, live
        self._event_log, self._long_term, self._analytics = event_log, long_term, analytics
        self._effects, self.spans = effects, spans
        self.checkpoints = AskedCheckpoints(None if checkpoints is None else checkpoints.take, shards.partitions)

    # Whose users these are

    def partition_here(self, user_id: str) -> int:
        """The user's partition. Raises `ShardNotHere` where it is not this worker's, or not recovered yet."""
        partition = self._assigned(user_id)
        if not self.health.recovered:
            self._say_what_comes_back(user_id)
            raise ShardNotHere(partition, NOT_HERE)
        return partition

    def _partition_of(self, user_id: str) -> int:
        """The user's partition, regardless of its owner."""
        return partition_of(user_id, self.settings.kafka.partitions)

    def _assigned(self, user_id: str) -> int:
        partition = self._partition_of(user_id)
        if partition not in self.shards.partitions():
            raise ShardNotHere(partition, NOT_HERE)
        return partition

    def _say_what_comes_back(self, user_id: str, cause: Exception | None = None) -> None:
        """Raise `ShardComingBack` where the user's partition is on its way back."""
        partition = self._partition_of(user_id)
        if behind := self.shards.coming_back.of(partition):
            what = "; ".join(one.what() for one in behind)
            left = seconds_left(behind) or 1.0
            raise ShardComingBack(partition, f"it is coming back: {what}; ask again", left) from cause

    async def readable(self, user_id: str, partial: bool) -> Sequence[Behind]:
        """Wait for all that the user's partition should hold; where it may be partial, for its shard alone.

        What of it is not there then: nothing, unless it may be partial.
        """
        if not partial:
            await self.caught_up(user_id)
            return ()
        partition = self._assigned(user_id)
        await self.shards.position(partition)
        if behind := self.shards.coming_back.of(partition):
            self.clock.observe(await self.shards.call(partition, Shard.newest_event))  # else it is not told before
        return behind

    async def caught_up(self, user_id: str) -> int:
        """The user's partition, when its shard is open and holds all that it should."""
        partition = self.partition_here(user_id)
        await self._long_term.caught_up(partition)
        return partition

    async def ask(
        self, user_id: str, method: Callable[Concatenate[Shard, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """`method(shard, …)` of the user's shard, once it has caught up.

        Raises `ShardComingBack` where that is long, and `TimeoutError` where the shard is busy.
        """
        return (await self.ask_partly(False, user_id, method, *args, **kwargs))[0]

    async def ask_partly(
        self,
        partial: bool,
        user_id: str,
        method: Callable[Concatenate[Shard, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> tuple[T, Sequence[Behind]]:
        """The same, and what is not back yet; where it may be `partial`, of what is there already."""
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                behind = await self.readable(user_id, partial)
                partition = self._partition_of(user_id)
                return await self.shards.call(partition, method, *args, **kwargs), behind
        except TimeoutError as exc:
            self._say_what_comes_back(user_id, exc)
            raise

    @asynccontextmanager
    async def own_shards(self) -> AsyncIterator[None]:
        """Ask this worker's shards, bounded in time. Raises `NotReady` while it is not known which shards these are.

        It is also raised if a shard moves meanwhile: the answer would cover an unknown set of shards, because another
        worker answers for its own only.
        """
        if not self.health.recovered:
            raise NotReady(f"{'; '.join(self.health.not_ready())}; ask again")
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                yield
        except ShardNotHere as exc:
            raise NotReady(f"partitions are moving ({exc}); ask again") from exc

    # What is told

    async def applied(
        self, user_id: str, seconds: float | None, write: Callable[[], Awaitable[Sequence[Place]]]
    ) -> tuple[Sequence[Place], bool | None]:
        """The places that `write` returns, and whether they can be read within `seconds`; None: it does not wait.

        Whether the caller may wait is checked before anything is written: raises `ShardNotHere`, and `NotReady` if
        too many callers wait. Written records are not taken back: False as well if their partition moves meanwhile.
        """
        if seconds is None:
            return await write(), None
        self.partition_here(user_id)
        with self._effects.reserved():
            places = await write()
            try:
                return places, await self._effects.until(places, seconds)
            except ShardNotHere:
                return places, False

    async def has_reached(self, places: Sequence[Place], seconds: float, user_id: str | None = None) -> None:
        """Wait until what lies there can be read here; of a user, where one is given.

        Raises `ConsistencyTokenError` where it is of another log or user, `NotReady` where it takes longer, and
        `ShardNotHere` where its partition is another worker's, or moves.
        """
        keyed = {self.topics.conversations, self.topics.long_term, self.topics.summary_requests}
        partitions = self.settings.kafka.partitions
        own = None if user_id is None else self._partition_of(user_id)
        for place in places:
            if place.topic not in keyed or place.partition >= partitions:
                raise ConsistencyTokenError("at_least: a token is of another log: ask the cluster that it came from")
            if own is not None and place.partition != own:
                raise ConsistencyTokenError(
                    f"at_least: a token is of another user: this one's records lie in partition {own}"
                )
        if places:
            with self._effects.reserved():
                await self._effects.are_written(places, WAIT_SECONDS)
                if not await self._effects.until(places, seconds):
                    where = ", ".join(map(str, places))
                    raise NotReady(f"what was written at {where} cannot be read after {seconds:g} s; ask again")

    async def add_message(self, user_id: str, message: bytes) -> Place:
        """Produce a chat message, or a session's end, as JSON. Raises as `write` does."""
        (place,) = await self._produce(self.topics.conversations, (user_id, message))
        return place

    async def add_messages(self, messages: Sequence[tuple[str, bytes]]) -> list[Place]:
        """Several, each with its user, in their order. Raises as `write` does; then some may be in the log."""
        return await self._produce(self.topics.conversations, *messages)

    async def write(self, event: LongTermEvent) -> Place:
        """Into the log; it takes effect within moments.

        Raises `BrokerUnavailable` before a broker was found, `NotAllowed`, and `NotReady` with the cause where the
        broker lets us not in any more.
        """
        value = event.model_dump_json(exclude_none=True).encode()
        with self.spans.writing(self._partition_of(event.user_id), event):
            (place,) = await self._produce(self.topics.long_term, (event.user_id, value))
        return place

    async def write_all(self, events: Sequence[LongTermEvent]) -> list[Place]:
        """Several of one user, in their order and in one go. Raises as `write` does; then some may be in the log."""
        records = [(one.user_id, one.model_dump_json(exclude_none=True).encode()) for one in events]
        with ExitStack() as spans:
            for one in events:
                spans.enter_context(self.spans.writing(self._partition_of(one.user_id), one))
            return await self._produce(self.topics.long_term, *records)

    async def request_summary(self, request: SummaryRequest) -> Place:
        """Raises as `write` does."""
        value = request.model_dump_json().encode()
        (place,) = await self._produce(self.topics.summary_requests, (request.user_id, value))
        return place

    async def produce_again(self, topic: str, user_id: str, value: bytes, seconds: float) -> tuple[Place, bool]:
        """What was a dead letter, mended; and whether its effect is there within so many seconds.

        False as well where the partition is another worker's. Raises as `write` does.
        """
        (place,) = await self._produce(topic, (user_id, value))
        try:
            with self._effects.reserved():
                return place, await self._effects.until([place], seconds)
        except ShardNotHere:
            return place, False

    async def _produce(self, topic: str, *records: tuple[str, bytes]) -> list[Place]:
        """Each record with its user, in their order."""
        if not self._event_log.connected:
            raise BrokerUnavailable(self.settings.kafka.bootstrap_servers)
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                sent = [await self._event_log.produce(topic, user_id, value) for user_id, value in records]
                taken = await asyncio.gather(*map(asyncio.shield, sent))
        except NOT_ALLOWED as exc:
            raise not_allowed(self.settings.kafka, [Right("WRITE", "topic", topic)]) from exc
        except TimeoutError as exc:
            if self.health.refusal:
                raise NotReady(self.health.refusal) from exc
            raise
        return [Place(record.topic, record.partition, record.offset) for record in taken]

    # What is asked

    async def search(self, query: Query, partial: bool = False) -> Hits:
        """What answers the query, most relevant first: memories, and what windows hold that is none.

        Where it may be `partial`, of what is there already; windows that are being read back are left out.
        """
        with self.spans.searching(self._partition_of(query.user_id), query.text) as found:
            try:
                async with asyncio.timeout(WAIT_SECONDS):
                    behind = await self.readable(query.user_id, partial)
                    if behind and not self.health.recovered:
                        query = replace(query, short_term=False)
                    hits = await self.recall.search(query)
            except TimeoutError as exc:
                self._say_what_comes_back(query.user_id, exc)
                raise
            hits.behind = behind
            found(hits)
            return hits

    async def search_archive(self, user_id: str, text: str, top_k: int, explain: bool) -> list[SearchHit]:
        """The user's archived memories that answer, most relevant first; it counts as no access."""
        with self.spans.searching(self._partition_of(user_id), text) as found:
            try:
                async with asyncio.timeout(WAIT_SECONDS):
                    await self.caught_up(user_id)
                    hits = await self.recall.search_archive(user_id, text, top_k, explain)
            except TimeoutError as exc:
                self._say_what_comes_back(user_id, exc)
                raise
            found(hits)
            return hits

    async def context(
        self,
        user_id: str,
        session_id: str,
        asked: str,
        limit: int | None,
        touch: bool = True,
        short_term: bool = True,
        partial: bool = False,
    ) -> Context:
        """Newest exchanges, notes, top memories, one prompt text. Where nothing is `asked`: what was said last.

        With `short_term`, what all of the user's windows hold is looked through for answers as well, but for the
        exchanges that are shown anyway. Where it may be `partial`, it is of what is there already: without exchanges
        and notes while windows are being read back.
        """
        wanted, away = self.settings.long_term.context_memories, partial and not self.health.recovered
        shown = [] if away else self.window(user_id, session_id, limit)
        behind: Sequence[Behind] = self.shards.coming_back.of(self._assigned(user_id)) if partial else ()
        asked = asked or _last_said(shown)
        hits: list[SearchHit] = []
        if asked and wanted:
            beside = _shown_window(session_id, shown)
            query = Query(user_id, asked, wanted, wanted_states(), touch=touch, short_term=short_term, beside=beside)
            found = await self.search(query, partial)
            hits, behind = found, found.behind or behind
            if not away:
                shown = self.window(user_id, session_id, limit)  # what was forgotten meanwhile is not shown
        notes = [] if away else self.notes(user_id, session_id)
        beside = _shown_window(session_id, shown)
        hits = [h for h in hits if h.state != SHORT_TERM or not beside.shows(h.session_id, h.message_ids)]
        lines = [f"{m.name or m.role}: {m.content}" for one in shown for m in one.exchange.messages]
        known = [hit for hit in hits if not beside.holds(hit.session_id, hit.message_ids)]
        return Context(shown, notes, hits, prompt_text(lines, known, notes), behind)

    def window(self, user_id: str, session_id: str, limit: int | None) -> list[WindowExchange]:
        """The newest exchanges of a session's short-term window, oldest first; expired ones never appear."""
        partition, memory = self.partition_here(user_id), self.settings.memory
        session = self.windows.session(partition, user_id, session_id)
        exchanges = self.windows.whole_window(partition, session)
        newest = unexpired(exchanges, self.clock.now(), memory.ttl_seconds)[-(limit or memory.context_turns) :]
        return [WindowExchange(one, one.seq == session.next) for one in newest]

    def notes(self, user_id: str, session_id: str) -> list[Note]:
        """What the session has to remember now, oldest first; expired notes are left out."""
        partition, now = self.partition_here(user_id), self.clock.now()
        return [n for n in self.windows.notes.of_session(partition, user_id, session_id) if n.expires_at > now]

    def notes_of(self, user_id: str) -> list[Note]:
        """The same of all of the user's sessions."""
        partition, now = self.partition_here(user_id), self.clock.now()
        return [note for note in self.windows.notes.of_user(partition, user_id) if note.expires_at > now]

    def window_of(self, user_id: str) -> list[tuple[str, Exchange]]:
        """What all of the user's windows hold, newest first, each with its session; expired ones never appear."""
        since = self.clock.now() - self.settings.memory.ttl_seconds * 1000
        return self.windows.newest_of(self.partition_here(user_id), user_id, since, sys.maxsize)

    def session(self, user_id: str, session_id: str) -> Session:
        return self.windows.session(self.partition_here(user_id), user_id, session_id)

    async def explain(self, session: Session, limit: int | None) -> list[Explanation]:
        """What became of a session's exchanges and why, oldest first; the expired ones as well."""
        partition = self.partition_here(session.user_id)
        held = [self.windows.exchange(partition, session, seq) for seq in session.named]
        if session.open:
            held.append(session.open_exchange)
        exchanges = sorted(held, key=lambda exchange: (exchange.started_at, exchange.seq))[-(limit or 0) :]
        ratings: dict[int, int] = {}
        async with asyncio.timeout(WAIT_SECONDS):
            for exchange in self.explainer.questions(exchanges):
                identity = exchange.memory_id(session.user_id, session.session_id)
                rating = await self.shards.call(partition, Shard.rating, identity, self.explainer.rater_name)
                if rating is not None:
                    ratings[exchange.seq] = rating
        return list(self.explainer.explain(session, exchanges, ratings))

    # Memories

    async def of_user(self, user_id: str) -> tuple[Memory, ...]:
        """All of the user's, oldest first; expired items are left out."""
        held, now = await self.ask(user_id, Shard.memories_of, user_id), self.clock.now()
        return tuple(memory for memory in held if not is_expired(memory, now))

    async def said_by(self, user_id: str) -> list[Memory]:
        """What the user's windows hold and is no memory, newest first: each as the memory that it may become."""
        await self.ask(user_id, Shard.newest_event)  # all that the shard should hold is there then
        async with asyncio.timeout(WAIT_SECONDS):
            return await self.recall.said_by(user_id)

    async def one(self, user_id: str, memory_id: uuid.UUID) -> Memory:
        """The user's memory of this id, or the one that a near-copy of this id went into.

        Raises `MemoryNotFound`.
        """
        return (await self.one_partly(False, user_id, memory_id))[0]

    async def one_partly(self, partial: bool, user_id: str, memory_id: uuid.UUID) -> tuple[Memory, Sequence[Behind]]:
        """The same, and what is not back yet. One that may be among that is not said to be missing."""
        found, behind = await self.ask_partly(partial, user_id, Shard.memory_of, user_id, memory_id)
        if found is None or is_expired(found, self.clock.now()):
            if behind:
                self._say_what_comes_back(user_id)
            raise MemoryNotFound(f"user {user_id} has no memory {memory_id}")
        return found, behind

    async def of_source(self, user_id: str, source: str) -> OfSource:
        """The ids of all that this source had a part in, of the shard and of the windows, expired ones as well.

        The windows are read first: what leaves them meanwhile is in the shard then.
        """
        partition = self.partition_here(user_id)
        window = self.windows.newest_of(partition, user_id, 0, sys.maxsize)
        of_sessions = self.windows.notes.of_user(partition, user_id)
        held = list(await self.ask(user_id, Shard.memories_of, user_id))
        held += [one.memory for one in await self.ask(user_id, Shard.archive_of, user_id)]
        memories = [one.id for one in held if any_covered([source], sources_in(one.meta, one.kind))]
        known = {one.id for one in held}
        exchanges = [
            identity
            for session, exchange in window
            if any_covered([source], exchange.sources())
            and (identity := exchange.memory_id(user_id, session)) not in known
        ]
        notes = [
            note.id for note in of_sessions if any_covered([source], sources_in(note.metadata or {}, "remember"))
        ]
        return OfSource(memories, exchanges, notes)

    async def archived(self, user_id: str, memory_id: uuid.UUID) -> uuid.UUID:
        """The id of an archived memory, or of the one that a near-copy of this id went into.

        Raises `MemoryNotFound`.
        """
        stands = await self.ask(user_id, Shard.stands_for, user_id, memory_id)
        for identity in (memory_id, stands):
            if await self.ask(user_id, Shard.archived, user_id, identity) is not None:
                return identity
        raise MemoryNotFound(f"user {user_id} has no memory {memory_id} in the archive")

    async def known(self, user_id: str, memory_id: uuid.UUID) -> uuid.UUID:
        """The id of a memory, archived or not, or of the one that a near-copy of this id went into.

        Raises `MemoryNotFound`.
        """
        found = await self.ask(user_id, Shard.memory_of, user_id, memory_id)
        if found is not None:
            return found.id
        try:
            return await self.archived(user_id, memory_id)
        except MemoryNotFound as exc:
            raise MemoryNotFound(f"user {user_id} has no memory {memory_id}") from exc

    # Days

    def newest_day(self, user_id: str) -> date:
        """That of the newest message in the user's windows; today, where they are empty."""
        partition = self.partition_here(user_id)
        said = (message.timestamp for _, message in self.windows.said_by(partition, user_id))
        return day_of(max(said, default=self.clock.now() or now_ms()), self.summaries.plan.timezone)

    def said_on(self, user_id: str, day: date) -> list[tuple[str, Message]]:
        """What the user's windows hold of a day: with each message's session, in no particular order."""
        return self.windows.said_on(self.partition_here(user_id), user_id, day, self.summaries.plan.timezone)

    # The whole of the worker

    async def moment(self) -> int:
        """The lifecycle's now (epoch ms), the shards' newest event among it."""
        return await self.shards.moment(self.clock)

    async def state_counts(self, at: int) -> dict[State, int]:
        """Memories of this worker's shards by state, as of `at` (epoch ms); nothing is written."""
        totals = dict.fromkeys(State, 0)
        for counts in await self.shards.call_each(Shard.state_counts, at, self.settings.lifecycle):
            for state, count in counts.items():
                totals[state] += count
        return totals

    async def snapshot(self) -> Copy:
        """Make the analysts' copy now, and answer when it is in its place; a backlog of messages goes first."""
        try:
            return await self._analytics.snapshot()
        except ShardNotHere as exc:
            raise NotReady(f"partitions are moving ({exc}); ask again") from exc


def _shown_window(session_id: str, shown: list[WindowExchange]) -> ShownWindow:
    return ShownWindow(session_id, frozenset(m.message_id for one in shown for m in one.exchange.messages))


def _last_said(shown: list[WindowExchange]) -> str:
    said = (m.content for one in reversed(shown) for m in reversed(one.exchange.messages) if m.role == "user")
    return next(said, "")
