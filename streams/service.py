"""`MemoryService`: the use cases behind every entry point, over stores, an event log and a clock."""

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
from schemas.sessions import Session
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
from streams.recall.prompt import prompt_text
from streams.recall.query import Hits, Query
from streams.recall.search import Recall
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
from tables.windows.short_term import ShortTermStore, unexpired

P = ParamSpec("P")
T = TypeVar("T")

#: A request waits this long for a shard that is being opened, or a broker that does not answer.
WAIT_SECONDS = 10.0

NOT_HERE = "its partition is on another worker, or moving; ask again"


class Health(Protocol):
    """Health of the worker that the service runs in."""

    @property
    def recovered(self) -> bool:
        """True if the windows have been recovered."""

    @property
    def refusal(self) -> str:
        """Why the broker refuses the worker now; empty if it does not, or cannot be reached."""

    @property
    def url(self) -> str:
        """The URL at which other workers reach this one."""

    def not_ready(self) -> list[str]:
        """Why the worker is not ready; empty when it is."""

    def warnings(self) -> list[str]:
        """Problems that do not stop the worker."""

    def behind(self) -> list[Behind]:
        """The parts of partitions that are still being recovered, with progress and time left."""

    def lag(self) -> dict[str, int]:
        """The number of uncommitted records, by topic."""


class WindowExchange(NamedTuple):
    """An exchange of a session's window, and whether it is still open."""

    exchange: Exchange
    open: bool


class OfSource(NamedTuple):
    """The ids that one source contributed to; `exchanges` are in windows, and are not memories."""

    memories: list[uuid.UUID]
    exchanges: list[uuid.UUID]
    notes: list[uuid.UUID]


@dataclass(frozen=True, slots=True)
class Context:
    """The context that an assistant needs before it answers."""

    exchanges: list[WindowExchange]
    notes: list[Note]
    hits: list[SearchHit]
    prompt: str
    behind: Sequence[Behind] = ()


class MemoryService:
    """The use cases for this worker's users. Raises `ShardNotHere` for users of other workers."""

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

    # Ownership of users

    def partition_here(self, user_id: str) -> int:
        """Return the user's partition. Raises `ShardNotHere` if it is not this worker's, or not recovered yet."""
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
        """Raise `ShardComingBack` if the user's partition is still being recovered."""
        partition = self._partition_of(user_id)
        if behind := self.shards.coming_back.of(partition):
            what = "; ".join(one.what() for one in behind)
            left = seconds_left(behind) or 1.0
            raise ShardComingBack(partition, f"it is coming back: {what}; ask again", left) from cause

    async def readable(self, user_id: str, partial: bool) -> Sequence[Behind]:
        """Wait until the user's partition has caught up; if `partial`, only until its shard is open.

        Return the parts that are still being recovered: none unless `partial`.
        """
        if not partial:
            await self.caught_up(user_id)
            return ()
        partition = self._assigned(user_id)
        await self.shards.position(partition)
        if behind := self.shards.coming_back.of(partition):
            self.clock.observe(await self.shards.call(partition, Shard.newest_event))  # as after catching up
        return behind

    async def caught_up(self, user_id: str) -> int:
        """Wait until the user's shard is open and has caught up with the log. Return its partition."""
        partition = self.partition_here(user_id)
        await self._long_term.caught_up(partition)
        return partition

    async def ask(
        self, user_id: str, method: Callable[Concatenate[Shard, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Return `method(shard, …)` of the user's shard, once it has caught up.

        Raises `ShardComingBack` if that takes too long, and `TimeoutError` if the shard is busy.
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
        """Like `ask`; return also the parts that are still being recovered. If `partial`, do not wait for them."""
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
        """Limit the time of calls to this worker's shards. Raises `NotReady` while the assignment is not known.

        It is also raised if a shard moves meanwhile: the answer would cover an unknown set of shards, because each
        worker answers only for its own.
        """
        if not self.health.recovered:
            raise NotReady(f"{'; '.join(self.health.not_ready())}; ask again")
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                yield
        except ShardNotHere as exc:
            raise NotReady(f"partitions are moving ({exc}); ask again") from exc

    # Writes

    async def applied(
        self, user_id: str, seconds: float | None, write: Callable[[], Awaitable[Sequence[Place]]]
    ) -> tuple[Sequence[Place], bool | None]:
        """Return the places of `write`, and whether they can be read within `seconds` (None: do not wait).

        Check first whether the caller may wait: raises `ShardNotHere`, and `NotReady` if too many callers wait.
        Written records are not taken back: the result is also False if their partition moves meanwhile.
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
        """Wait until the records at these places can be read here. With `user_id`, they must be that user's.

        Raises `ConsistencyTokenError` if a place is of another log or user, `NotReady` if it takes longer, and
        `ShardNotHere` if another worker owns the partition, or it moves.
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
        """Produce messages, each with its user id, in order. Raises as `write` does; then some may be in the log."""
        return await self._produce(self.topics.conversations, *messages)

    async def write(self, event: LongTermEvent) -> Place:
        """Append the event to the log; it takes effect within moments.

        Raises `BrokerUnavailable` before a broker was found, `NotAllowed`, `NotReady` with the reason if the broker
        refuses the worker now, and `TimeoutError` if it does not answer.
        """
        value = event.model_dump_json(exclude_none=True).encode()
        with self.spans.writing(self._partition_of(event.user_id), event):
            (place,) = await self._produce(self.topics.long_term, (event.user_id, value))
        return place

    async def write_all(self, events: Sequence[LongTermEvent]) -> list[Place]:
        """Append events of one user together, in order. Raises as `write` does; then some may be in the log."""
        records = [(one.user_id, one.model_dump_json(exclude_none=True).encode()) for one in events]
        with ExitStack() as spans:
            for one in events:
                spans.enter_context(self.spans.writing(self._partition_of(one.user_id), one))
            return await self._produce(self.topics.long_term, *records)

    async def request_summary(self, request: SummaryRequest) -> Place:
        """Produce the request. Raises as `write` does."""
        value = request.model_dump_json().encode()
        (place,) = await self._produce(self.topics.summary_requests, (request.user_id, value))
        return place

    async def produce_again(self, topic: str, user_id: str, value: bytes, seconds: float) -> tuple[Place, bool]:
        """Produce a mended dead letter. Return its place, and whether it can be read within `seconds`.

        The latter is also False if another worker owns the partition. Raises as `write` does.
        """
        (place,) = await self._produce(topic, (user_id, value))
        try:
            with self._effects.reserved():
                return place, await self._effects.until([place], seconds)
        except ShardNotHere:
            return place, False

    async def _produce(self, topic: str, *records: tuple[str, bytes]) -> list[Place]:
        """Produce records of (user id, value) in order, and wait until the broker has acknowledged all."""
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

    # Queries

    async def search(self, query: Query, partial: bool = False) -> Hits:
        """Return the hits, most relevant first: memories, and exchanges of windows that are not memories.

        If `partial`, search what has been recovered; windows that are still being recovered are left out.
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
        """Return the user's archived memories that match, most relevant first. This is not an access."""
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
        """Return the newest exchanges, notes, top memories and one prompt text.

        If `asked` is empty, search for the user's last message. With `short_term`, also search all of the user's
        windows, except the exchanges that are shown anyway. If `partial`, use what has been recovered: no exchanges
        and no notes while windows are being recovered.
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
                shown = self.window(user_id, session_id, limit)  # some may have been forgotten meanwhile
        notes = [] if away else self.notes(user_id, session_id)
        beside = _shown_window(session_id, shown)
        hits = [h for h in hits if h.state != SHORT_TERM or not beside.shows(h.session_id, h.message_ids)]
        lines = [f"{m.name or m.role}: {m.content}" for one in shown for m in one.exchange.messages]
        known = [hit for hit in hits if not beside.holds(hit.session_id, hit.message_ids)]
        return Context(shown, notes, hits, prompt_text(lines, known, notes), behind)

    def window(self, user_id: str, session_id: str, limit: int | None) -> list[WindowExchange]:
        """Return the newest unexpired exchanges of a session's window, oldest first."""
        partition, memory = self.partition_here(user_id), self.settings.memory
        session = self.windows.session(partition, user_id, session_id)
        exchanges = self.windows.whole_window(partition, session)
        newest = unexpired(exchanges, self.clock.now(), memory.ttl_seconds)[-(limit or memory.context_turns) :]
        return [WindowExchange(one, one.seq == session.next) for one in newest]

    def notes(self, user_id: str, session_id: str) -> list[Note]:
        """Return the session's unexpired notes, oldest first."""
        partition, now = self.partition_here(user_id), self.clock.now()
        return [n for n in self.windows.notes.of_session(partition, user_id, session_id) if n.expires_at > now]

    def notes_of(self, user_id: str) -> list[Note]:
        """Return the unexpired notes of all of the user's sessions."""
        partition, now = self.partition_here(user_id), self.clock.now()
        return [note for note in self.windows.notes.of_user(partition, user_id) if note.expires_at > now]

    def window_of(self, user_id: str) -> list[tuple[str, Exchange]]:
        """Return the unexpired exchanges of all of the user's windows, newest first, each with its session id."""
        since = self.clock.now() - self.settings.memory.ttl_seconds * 1000
        return self.windows.newest_of(self.partition_here(user_id), user_id, since, sys.maxsize)

    def session(self, user_id: str, session_id: str) -> Session:
        return self.windows.session(self.partition_here(user_id), user_id, session_id)

    async def explain(self, session: Session, limit: int | None) -> list[Explanation]:
        """Explain what became of a session's exchanges, oldest first, expired ones included."""
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
        """Return all of the user's memories, oldest first, without expired items."""
        held, now = await self.ask(user_id, Shard.memories_of, user_id), self.clock.now()
        return tuple(memory for memory in held if not is_expired(memory, now))

    async def said_by(self, user_id: str) -> list[Memory]:
        """Return window exchanges that are not memories, newest first, each as the memory that it may become."""
        await self.ask(user_id, Shard.newest_event)  # wait until the shard has caught up
        async with asyncio.timeout(WAIT_SECONDS):
            return await self.recall.said_by(user_id)

    async def one(self, user_id: str, memory_id: uuid.UUID) -> Memory:
        """Return the user's memory with this id, or the memory that a near-copy with this id was merged into.

        Raises `MemoryNotFound`.
        """
        return (await self.one_partly(False, user_id, memory_id))[0]

    async def one_partly(self, partial: bool, user_id: str, memory_id: uuid.UUID) -> tuple[Memory, Sequence[Behind]]:
        """Like `one`; return also the parts that are still being recovered.

        Raises `ShardComingBack` instead of `MemoryNotFound` if the memory may be in one of them.
        """
        found, behind = await self.ask_partly(partial, user_id, Shard.memory_of, user_id, memory_id)
        if found is None or is_expired(found, self.clock.now()):
            if behind:
                self._say_what_comes_back(user_id)
            raise MemoryNotFound(f"user {user_id} has no memory {memory_id}")
        return found, behind

    async def of_source(self, user_id: str, source: str) -> OfSource:
        """Return the ids that this source contributed to, in the shard and the windows, expired ones included.

        Read the windows first: an exchange that is promoted meanwhile is then found in the shard.
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
        """Return the id of an archived memory, or of the one that a near-copy with this id was merged into.

        Raises `MemoryNotFound`.
        """
        stands = await self.ask(user_id, Shard.stands_for, user_id, memory_id)
        for identity in (memory_id, stands):
            if await self.ask(user_id, Shard.archived, user_id, identity) is not None:
                return identity
        raise MemoryNotFound(f"user {user_id} has no memory {memory_id} in the archive")

    async def known(self, user_id: str, memory_id: uuid.UUID) -> uuid.UUID:
        """Return the id of a memory, archived or not, or of the one that a near-copy with this id was merged into.

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
        """Return the day of the newest message in the user's windows, or today if they are empty."""
        partition = self.partition_here(user_id)
        said = (message.timestamp for _, message in self.windows.said_by(partition, user_id))
        return day_of(max(said, default=self.clock.now() or now_ms()), self.summaries.plan.timezone)

    def said_on(self, user_id: str, day: date) -> list[tuple[str, Message]]:
        """Return the messages of a day in the user's windows, each with its session id, in no particular order."""
        return self.windows.said_on(self.partition_here(user_id), user_id, day, self.summaries.plan.timezone)

    # The whole worker

    async def moment(self) -> int:
        """Return the lifecycle's now (epoch ms); before an event clock has started, the shards' newest event."""
        return await self.shards.moment(self.clock)

    async def state_counts(self, at: int) -> dict[State, int]:
        """Memories of this worker's shards by state, as of `at` (epoch ms); nothing is written."""
        totals = dict.fromkeys(State, 0)
        for counts in await self.shards.call_each(Shard.state_counts, at, self.settings.lifecycle):
            for state, count in counts.items():
                totals[state] += count
        return totals

    async def snapshot(self) -> Copy:
        """Make the analysts' copy now, and return when it is in place. A backlog of messages goes first."""
        try:
            return await self._analytics.snapshot()
        except ShardNotHere as exc:
            raise NotReady(f"partitions are moving ({exc}); ask again") from exc


def _shown_window(session_id: str, shown: list[WindowExchange]) -> ShownWindow:
    return ShownWindow(session_id, frozenset(m.message_id for one in shown for m in one.exchange.messages))


def _last_said(shown: list[WindowExchange]) -> str:
    said = (m.content for one in reversed(shown) for m in reversed(one.exchange.messages) if m.role == "user")
    return next(said, "")
