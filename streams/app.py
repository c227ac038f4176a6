"""Assembly of one worker from its parts, and nothing else."""

from __future__ import annotations

import logging
from contextlib import AsyncExitStack
from functools import partial

from schemas.settings import Settings
from schemas.topics import PENDING_SUMMARIES, SESSIONS
from streams.doors.application import build
from streams.doors.http.forwarding import Forwarding
from streams.doors.server import ApiServer
from streams.forgetting.forgetters import Forgetters
from streams.kafka.commit.kept_partitions import leave_all_but
from streams.memory.read_your_writes import ReadYourWrites
from streams.runtime.timers import Timer, Timers
from streams.service import MemoryService
from streams.telemetry.spans import Spans
from streams.worker.activity import Activity
from streams.worker.assignment import Assignment
from streams.worker.health import WorkerHealth
from streams.worker.jobs import Jobs
from streams.worker.registering import register
from streams.worker.wiring.access import Access
from streams.worker.wiring.chats import Chats
from streams.worker.wiring.checkpoints import Checkpointing
from streams.worker.wiring.context import WorkerContext
from streams.worker.wiring.faust_run import FaustRun
from streams.worker.wiring.intake import Intake, kept_tables, session_notes
from streams.worker.wiring.long_term import long_term_agent, recall, reranker, reworded_profiles, tombstones
from streams.worker.wiring.storage import Storage
from streams.worker.wiring.summaries import summaries_agent
from tables.privacy import make_private
from tables.summaries.pending_summaries import PendingSummaries

log = logging.getLogger(__name__)


class Siltstone:
    """One worker: agents, shards, jobs and API.

    worker = Siltstone(settings)
    await worker.start()
    await worker.stopped()        # raises the error that stopped it, if there was one
    await worker.stop()
    """

    def __init__(self, settings: Settings, spans: Spans | None = None) -> None:
        self.context = context = WorkerContext.of(settings, spans)
        self.settings, self.topics, self.metrics = context.settings, context.topics, context.metrics
        self.clock, self.hot, self._plan = context.clock, context.hot, settings.summaries()
        self._chats = chats = Chats(settings.rater(), self._plan.model)
        self._storage = storage = Storage(settings, settings.data_dir / "shards", context.on_failure)
        self.shards = storage.shards
        self._pending = PendingSummaries(kept=context.kept(PENDING_SUMMARIES), resident=context.resident)
        self.intake = Intake(context, self.shards, chats.rater, self._plan, kept=kept_tables(context))
        self.notes = session_notes(context, self.shards, self.intake)
        self.summaries = summaries_agent(context, self.shards, chats, self._plan, self._pending)
        self.jobs = Jobs(context, storage, self.summaries, chats.rater)
        self._reranker = reranker(context)
        self.recall = recall(context, self.shards, self.intake, self._reranker)
        self._rewording = rewording = reworded_profiles(context, chats.rater)
        forgetters = Forgetters(
            self.intake.short_term,
            self.summaries,
            self.jobs.forgot,
            tombstones(self.shards),
            context.erase_rows,
            (lambda user_id: None) if rewording is None else rewording.forget,
        )
        self.long_term = long_term_agent(
            context, self.shards, self.notes, forgetters, context.read_long_term, self.jobs.born
        )
        self._timers = Timers(self.hot.halt, context.metrics.timer_failures)
        self._assignment = Assignment(
            context, self.shards, self.intake, self.notes, self.long_term, self.jobs.refining, rewording, self._timers
        )
        self.broker, self.api = context.broker_link(self._assignment.is_recovered), ApiServer(settings.http)
        self.checkpointing = beside = Checkpointing(context, self.shards, self.long_term, self.broker)
        self.health = WorkerHealth(
            self.hot,
            self.broker,
            self._assignment,
            self.shards,
            self.long_term,
            beside,
            lambda: self.api.url,
            settings.data_dir,
        )
        effects = ReadYourWrites(self.hot)
        self.service = MemoryService(
            settings=settings,
            topics=context.topics,
            clock=context.clock,
            metrics=context.metrics,
            event_log=context.event_log,
            spans=context.spans,
            effects=effects,
            health=self.health,
            windows=self.intake.windows,
            pending_summaries=self._pending,
            shards=self.shards,
            long_term=self.long_term,
            summaries=self.summaries,
            recall=self.recall,
            explainer=self.intake.explainer,
            cleanup=self.jobs.cleanup,
            analytics=self.jobs.analytics,
            reembedder=self.jobs.reembedder,
            live=Activity(context.flow, context.readings, self.intake.short_term.idle.newest),
            checkpoints=beside.job,
            rewording=rewording,
        )
        self.forwarding = Forwarding(
            partial(self.hot.owner, SESSIONS), lambda: self.api.url, context.partitions, effects.reserved
        )
        self._access = Access(settings)
        self._faust, self._parts = FaustRun(context, self.recall, self.broker), AsyncExitStack()
        register(context, self.intake, self._pending, self._assignment, self.long_term, self.summaries)

    async def start(self, *, patient: bool = False) -> None:
        """Start the worker, and return when partitions are assigned and tables are recovered.

        If `patient`, wait for a broker that does not answer, and for missing rights on the consumer group. The
        worker's health reports this meanwhile. If the broker refuses the worker for another reason, do not wait.

        Raises `BrokerUnavailable`, `DataDirError`, `SettingsError`, or another error that prevents the start. After
        an error, call `stop` to end the parts that have started.
        """
        make_private(self.settings.data_dir)
        for warning in self.settings.warnings():
            log.warning("%s", warning)
        faust, parts = self._faust, self._parts  # `stop` closes the parts in reverse order
        parts.push_async_callback(self.context.spans.close)
        parts.push_async_callback(faust.leave)
        parts.push_async_callback(leave_all_but, (), self.context.stores)
        parts.push_async_callback(self._storage.close)
        parts.push_async_callback(self.long_term.stop)
        parts.push_async_callback(faust.stop)
        parts.push_async_callback(self._chats.close)
        if self._rewording is not None:
            parts.push_async_callback(self._rewording.stop)
        if self._reranker is not None:
            parts.push_async_callback(self._reranker.stop)
        parts.push_async_callback(self.summaries.stop)
        await parts.enter_async_context(self.jobs)
        await parts.enter_async_context(self.intake)
        parts.push_async_callback(self.forwarding.close)
        parts.push_async_callback(self.api.stop)
        parts.push_async_callback(self.broker.close)
        parts.push_async_callback(self._timers.close)
        parts.push_async_callback(self._access.close)
        await self.api.start(build(self.service, self.forwarding, self._access.admission))
        self.hot.advertise(self.api.url)
        await self.broker.find(patient=patient)
        self._access.start()
        self._storage.start()
        if self._reranker is not None:
            self._reranker.start()
        await self.context.faust.start()
        self.broker.watch(self._timers)
        self.jobs.schedule(self._timers)
        self.checkpointing.schedule(self._timers)
        self.intake.schedule(self._timers, self._assignment.is_recovered, self.notes, self.hot.lag_by_partition)
        self._timers.every(Timer.ACCESSES, self.settings.long_term.access_seconds, self.recall.tell_accesses)
        parts.push_async_callback(self.checkpointing.last)
        parts.push_async_callback(self.service.checkpoints.close)

    async def stopped(self) -> None:
        """Wait until the worker stops. Raises the error that stopped it."""
        await self._faust.stopped()

    async def stop(self) -> None:
        """Commit the processed records, close the shards and end.

        If a part raises an error, all other parts are still closed before the error is raised.
        """
        await self._parts.aclose()
