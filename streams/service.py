"""`MemoryService`: the use cases that HTTP, MCP and all other entry points call."""

from __future__ import annotations

import asyncio
import sys
import uuid
from collections.abc import Sequence
from dataclasses import replace
from datetime import tzinfo
from typing import NamedTuple

from schemas.errors import MemoryNotFound, NotReady, ShardNotHere
from schemas.memories import Memory, SearchHit, State
from schemas.settings import Settings
from schemas.sources import any_covered, sources_in
from schemas.times import now_ms, parse_local
from schemas.topics import Topics
from streams.intake.rules.explaining import Explainer
from streams.intake.rules.importance import Importance
from streams.intake.user_sessions import UserSessions, WindowExchange
from streams.kafka.event_log import EventLog
from streams.memory.agent import LongTermAgent
from streams.memory.analytics import AnalyticsJob
from streams.memory.cleanup import CleanupJob
from streams.memory.read_your_writes import ReadYourWrites
from streams.memory.reembedding import Reembedder
from streams.memory.writes import Writes
from streams.recall.context import Context, ContextQuery, context_of
from streams.recall.dates import ReferenceDate
from streams.recall.profile import MOST_TOKENS, Profile, profile_of
from streams.recall.profile_reading import Readings
from streams.recall.query import Among, Hits, Query
from streams.recall.reworded_profiles import RewordedProfiles
from streams.recall.search import Recall
from streams.recall.windows import ShownWindow
from streams.runtime.clock import Clock
from streams.shards.owned import OwnedShards
from streams.shards.restore.asked_checkpoints import AskedCheckpoints
from streams.shards.restore.checkpoint_job import CheckpointJob
from streams.shards.user_shards import UserShards
from streams.summaries.agent import SummariesAgent
from streams.telemetry.health import Health
from streams.telemetry.metrics import Metrics
from streams.telemetry.recovery_progress import Behind
from streams.telemetry.spans import Spans
from streams.worker.activity import Activity
from tables.analysts.copy import Copy
from tables.memories.items import is_expired
from tables.memories.shard import Shard
from tables.summaries.pending_summaries import PendingSummaries
from tables.windows.short_term import ShortTermStore


class OfSource(NamedTuple):
    """The ids of a user's data from one source. `exchanges` are exchanges of windows that are not memories."""

    memories: list[uuid.UUID]
    exchanges: list[uuid.UUID]
    notes: list[uuid.UUID]


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
        rewording: RewordedProfiles | None = None,
    ) -> None:
        self.settings, self.topics, self.clock, self.metrics = settings, topics, clock, metrics
        self.importance = Importance(settings.memory)
        self.health, self.windows, self.pending_summaries, self.shards = health, windows, pending_summaries, shards
        self.summaries, self.recall = summaries, recall
        self.cleanup, self.reembedder, self.live = cleanup, reembedder, live
        self._analytics, self.spans, self._readings, self._rewording = analytics, spans, Readings(), rewording
        self.users = UserShards(shards, settings.kafka.partitions, health, clock, long_term.caught_up)
        self.writes = Writes(
            kafka=settings.kafka,
            topics=topics,
            event_log=event_log,
            effects=effects,
            users=self.users,
            health=health,
            spans=spans,
        )
        self.sessions = UserSessions(
            users=self.users,
            windows=windows,
            shards=shards,
            explainer=explainer,
            memory=settings.memory,
            clock=clock,
            timezone=summaries.plan.timezone,
        )
        self.checkpoints = AskedCheckpoints(None if checkpoints is None else checkpoints.take, shards.partitions)

    # Queries

    async def search(self, query: Query, partial: bool = False) -> Hits:
        """Return the hits, most relevant first: memories, and exchanges of windows that are not memories.

        If `partial`, do not wait until the user's partition is recovered, but search the memories that are recovered
        so far. Windows are then searched only if their tables are recovered.
        """
        hits = await self._found(query, partial)
        self.recall.count(query, hits)
        return hits

    async def _found(self, query: Query, partial: bool) -> Hits:
        """Search as `search` does, but count no accesses."""
        query = replace(query, reference=query.reference or self.reference())
        with self.spans.searching(self.users.partition_of(query.user_id), query.text) as found:
            async with self.users.in_time(query.user_id) as until:
                behind = await self.users.readable(query.user_id, partial)
                if behind and not self.health.recovered:
                    query = replace(query, short_term=False)
                hits = await self.recall.search(query, until)
            found(hits)
            return Hits(hits, hits.elsewhere, behind)

    async def search_archive(self, query: Query) -> list[SearchHit]:
        """Return the user's archived memories that match the text, most relevant first. No access is counted."""
        query = replace(query, reference=query.reference or self.reference())
        with self.spans.searching(self.users.partition_of(query.user_id), query.text) as found:
            async with self.users.in_time(query.user_id) as until:
                await self.users.caught_up(query.user_id)
                hits = await self.recall.search_archive(query, until)
            found(hits)
            return hits

    def reference(self, given: str | int | None = None, zone: tzinfo | None = None) -> ReferenceDate:
        """Return the moment of a question: now, by the lifecycle's clock, in the time zone of daily summaries.

        `given` and `zone` replace them.
        """
        zone = zone or self.summaries.plan.timezone
        moment = (self.clock.now() or now_ms()) if given is None else parse_local(given, zone)
        return ReferenceDate(moment, zone, self.settings.recall.dates)

    async def context(self, asked: ContextQuery) -> Context:
        """Return a session's newest exchanges and notes, the most relevant memories, and one prompt with all of it.

        If `asked.short_term`, all of the user's windows are searched as well; exchanges that the context already
        shows are left out of the hits. While windows are being recovered, a partial context has no exchanges and no
        notes.
        """
        user_id, session_id, partial = asked.user_id, asked.session_id, asked.partial
        usual, away = self.settings.long_term.context_memories, partial and not self.health.recovered
        reference = asked.reference or self.reference()
        window = [] if away else self.sessions.window(user_id, session_id, asked.exchanges)
        behind: Sequence[Behind] = self.shards.coming_back.of(self.users.assigned(user_id)) if partial else ()
        among = Among.of(as_of=asked.as_of is not None)
        query = Query(
            user_id,
            asked.text or _last_said(window),
            asked.most_memories(usual),
            among.states,
            replaced=among.replaced,
            touch=asked.touch,
            short_term=asked.short_term,
            # With a maximum length, some exchanges may not be shown: then they are to be found.
            beside=None if asked.max_tokens else ShownWindow.of(session_id, [one.exchange for one in window]),
            reference=reference,
            as_of=asked.as_of,
        )
        profile = None
        if asked.profile:  # before the windows are read again, in which exchanges may be forgotten by then
            profile, _ = await self._profile(user_id, reference, partial, asked.profile_tokens)
            if self._rewording is not None:  # a context does not wait for the model, and asks it nothing
                profile = self._rewording.ready(user_id, profile, reference, asked.profile_tokens)
        hits: Sequence[SearchHit] = ()
        if query.text and query.top_k:
            found = await self._found(query, partial)
            hits, behind = found, found.behind or behind
            if not away:
                # some exchanges may be forgotten by now
                window = self.sessions.window(user_id, session_id, asked.exchanges)
        notes = [] if away else self.sessions.notes(user_id, session_id)
        # In a thread: a long prompt has many tokens to be estimated, a tenth of a second for 250,000.
        context = await asyncio.to_thread(
            context_of, asked, reference, hits, notes, window, usual=usual, profile=profile
        )
        self.recall.count(query, context.hits)
        return replace(context, behind=behind)

    async def profile(
        self, user_id: str, reference: ReferenceDate, partial: bool = False
    ) -> tuple[Profile, Sequence[Behind]]:
        """Return who the user is, and the parts of the user's partition that are still being recovered.

        It is computed from the memories that are there now. This counts as no access. With
        `recall.profile_by_model`, a model rewords it.
        """
        moment = 0 if self._rewording is None else self._rewording.moment()
        profile, behind = await self._profile(user_id, reference, partial, MOST_TOKENS)
        if self._rewording is not None:
            profile = await self._rewording.reworded(user_id, profile, reference, moment)
        return profile, behind

    async def _profile(
        self, user_id: str, reference: ReferenceDate, partial: bool, most_tokens: int
    ) -> tuple[Profile, Sequence[Behind]]:
        """Return a profile in the user's words, as `profile` does."""
        held, behind = await self.users.ask_partly(partial, user_id, Shard.memories_of, user_id)
        now, lifecycle = self.clock.now(), self.settings.lifecycle
        # In a thread: the first profile of a user with a thousand memories takes a tenth of a second.
        asked = (held, reference, now, lifecycle, most_tokens, self._readings)
        return await asyncio.to_thread(profile_of, *asked), behind

    # Memories

    async def of_user(self, user_id: str) -> tuple[Memory, ...]:
        """Return all of the user's memories, oldest first, without expired items."""
        held, now = await self.users.ask(user_id, Shard.memories_of, user_id), self.clock.now()
        return tuple(memory for memory in held if not is_expired(memory, now))

    async def said_by(self, user_id: str) -> list[Memory]:
        """Return the exchanges of the user's windows that are not memories, newest first.

        Each exchange has the form of the memory that it may become.
        """
        await self.users.ask(user_id, lambda shard: shard.ageing.newest_event())  # wait until the shard has caught up
        async with self.users.in_time(user_id):
            return await self.recall.said_by(user_id)

    async def one(self, user_id: str, memory_id: uuid.UUID) -> Memory:
        """Return the user's memory with this id, or the memory that a near-copy with this id was merged into.

        Raises `MemoryNotFound`.
        """
        return (await self.one_partly(False, user_id, memory_id))[0]

    async def one_partly(self, partial: bool, user_id: str, memory_id: uuid.UUID) -> tuple[Memory, Sequence[Behind]]:
        """Like `one`, but return also the parts of the user's partition that are still being recovered.

        If `partial`, do not wait for the recovery. If the memory is not found, but may be in a part that is not
        recovered yet, raise `ShardComingBack` instead of `MemoryNotFound`.
        """
        found, behind = await self.users.ask_partly(partial, user_id, Shard.memory_of, user_id, memory_id)
        if found is None or is_expired(found, self.clock.now()):
            if behind:
                self.users.say_what_comes_back(user_id)
            raise MemoryNotFound(f"user {user_id} has no memory {memory_id}")
        return found, behind

    async def of_source(self, user_id: str, source: str) -> OfSource:
        """Return the ids of memories, exchanges and notes to which this source contributed, including expired ones.

        The windows are read before the shard, so that an exchange that is promoted in between is found in the shard.
        """
        partition = self.users.partition_here(user_id)
        window = self.windows.newest_of(partition, user_id, 0, sys.maxsize)
        of_sessions = self.windows.notes.of_user(partition, user_id)
        held = list(await self.users.ask(user_id, Shard.memories_of, user_id))
        held += [one.memory for one in await self.users.ask(user_id, lambda shard: shard.archive.listed(user_id))]
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
        """Return the id of an archived memory.

        For the id of a near-copy, return the id of the archived memory that it was merged into.

        Raises `MemoryNotFound`.
        """

        def found(shard: Shard) -> uuid.UUID | None:
            ids = (memory_id, shard.stands_for(user_id, memory_id))
            return next((one for one in ids if shard.archive.find(user_id, one) is not None), None)

        identity = await self.users.ask(user_id, found)
        if identity is None:
            raise MemoryNotFound(f"user {user_id} has no memory {memory_id} in the archive")
        return identity

    async def known(self, user_id: str, memory_id: uuid.UUID) -> uuid.UUID:
        """Return the id of a memory, which may be archived.

        For the id of a near-copy, return the id of the memory that it was merged into.

        Raises `MemoryNotFound`.
        """
        found = await self.users.ask(user_id, Shard.memory_of, user_id, memory_id)
        if found is not None:
            return found.id
        try:
            return await self.archived(user_id, memory_id)
        except MemoryNotFound as exc:
            raise MemoryNotFound(f"user {user_id} has no memory {memory_id}") from exc

    # The whole worker

    async def moment(self) -> int:
        """Return the current time of the lifecycle's clock (epoch ms).

        An event clock has no time before its first event. Then the time of the newest event in the shards is
        returned.
        """
        return await self.shards.moment(self.clock)

    async def state_counts(self, at: int) -> dict[State, int]:
        """Count the memories of this worker's shards by their state at `at` (epoch ms). This writes nothing."""
        totals = dict.fromkeys(State, 0)
        for counts in await self.shards.call_each(
            lambda shard: shard.ageing.state_counts(at, self.settings.lifecycle)
        ):
            for state, count in counts.items():
                totals[state] += count
        return totals

    async def snapshot(self) -> Copy:
        """Make the analysts' copy, and return when it is in place.

        During a backlog of messages, the copy waits, but at most for `long_term.intake_first_seconds`.
        """
        try:
            return await self._analytics.snapshot()
        except ShardNotHere as exc:
            raise NotReady(f"partitions are moving ({exc}); ask again") from exc


def _last_said(shown: list[WindowExchange]) -> str:
    said = (m.content for one in reversed(shown) for m in reversed(one.exchange.messages) if m.role == "user")
    return next(said, "")
