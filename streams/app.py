"""The Faust app, and everything that works in it, wired from `Settings`: nothing else."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import ssl
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import faust
from faust.contrib.asgi import AsgiService
from faust.types.auth import SASLMechanism

from schemas.errors import BrokerEmptied, BrokerUnavailable, DataDirError, SiltstoneError
from schemas.memories import State
from schemas.messages import iso
from schemas.settings import JudgeSettings, KafkaSettings, Settings
from schemas.topics import Topics, partition_of
from streams.agents.analytics import AnalyticsAgent
from streams.agents.cleanup import CleanupAgent
from streams.agents.former import FormerShards
from streams.agents.lifecycle import LifecycleAgent
from streams.agents.long_term import LongTermAgent
from streams.agents.notes import NotesAgent
from streams.agents.refining import RefiningAgent
from streams.agents.retention import RetentionAgent
from streams.agents.short_term import ShortTermAgent
from streams.agents.summaries import SummariesAgent
from streams.clients.broker import MAX_RECORD_BYTES, ensure_topics, missing_topics, require_topics, ssl_context
from streams.clients.embedding import Embedding
from streams.clients.extraction_process import ExtractionProcess
from streams.clients.judge import ModelJudge
from streams.clients.log_reader import end_of, records_between
from streams.clients.refiner import ModelRefiner
from streams.clients.summariser import ModelSummariser
from streams.clock import clock_of, now_ms
from streams.dead_letters import DeadLetters
from streams.hotpath import HotPath, Lost
from streams.memory_shares import shares
from streams.metrics import Metrics
from streams.precedence import IntakeFirst
from streams.ratings import Ratings
from streams.recall import Recall
from streams.reembedding import Reembedder
from streams.replaying.interrupted import drop_interrupted
from streams.rerouting import Rerouting
from streams.rules.estimator import estimate
from streams.rules.explaining import Explainer
from streams.rules.promotion import Promoter
from streams.rules.session import SessionRules
from streams.rules.summary.triggers import Triggers
from streams.shards import OwnedShards
from streams.web.api import build
from streams.web.forwarding import Forwarding
from tables.pending_summaries import PendingSummaries
from tables.shard import Shard
from tables.short_term import ShortTermStore

if TYPE_CHECKING:
    from streams.clients.chat import ChatModel

log = logging.getLogger(__name__)

#: Seconds before the first, and at the most between two, attempts to reach the broker.
FIRST_RETRY, LONGEST_RETRY = 1.0, 30.0
#: How long a stop waits for the broker to take what is due.
SETTLE_SECONDS = 6.0
#: How often silence is looked for, lag is measured, and accesses are told to the log.
TICK_SECONDS = 1.0
#: How often it is looked whether topics are missing, while the broker keeps a commit waiting for as long.
LOOK_SECONDS = 10.0
#: How often expired notes are dropped; no answer shows them meanwhile.
NOTES_SECONDS = 60.0
#: How often it is tried again to remove what is left of forgotten users.
SWEEP_SECONDS = 60.0
#: How often it is looked whether what is here of other workers' partitions was forgotten.
FORMER_SECONDS = 300.0
#: How often what is too old is dropped.
RETENTION_SECONDS = 600.0
#: A changelog's batch: a broker takes 1 MiB unless told otherwise, and the fewer there are, the sooner it commits.
BATCH_BYTES = 900_000


class Siltstone:
    """One worker: agents, shards and API.

    worker = Siltstone(settings)
    await worker.start()
    await worker.stopped()        # raises what stopped it, if it did not stop by itself
    await worker.stop()
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.topics = topics = Topics.with_prefix(settings.kafka.topic_prefix)
        self.metrics = metrics = Metrics()
        self.clock = clock = clock_of(settings.lifecycle.clock)
        self.windows = ShortTermStore()
        partitions = settings.kafka.partitions

        self.faust = _faust_app(settings)
        self.hot = hot = HotPath(self.faust, settings.kafka.isolation_level)
        memory = shares(settings.memory_limit)
        self.shards = OwnedShards(
            settings.data_dir / "shards",
            settings.long_term,
            settings.lifecycle,
            Embedding(settings.embedder()),
            on_failure=hot.halt,
            memory=memory,
        )
        dead_letters = DeadLetters(hot.outbox, topics.dead_letters, metrics)
        hot.outbox.when_refused = dead_letters.keep_refused
        rerouting = Rerouting(hot.outbox, metrics, partitions)
        judge = settings.judge()
        self._chat = None if judge is None else _chat_model(judge)
        self.ratings = (
            None
            if judge is None or self._chat is None
            else Ratings(ModelJudge(self._chat), judge.concurrency, self.shards, metrics, on_failure=hot.halt)
        )
        at_once = _estimate if judge is None else None
        promoter = Promoter(settings.memory, at_once)
        self.explainer = Explainer(settings.memory, at_once, "the local estimator" if judge is None else judge.model)
        self.summary_plan = plan = settings.summaries()
        self._summing_chat = None if plan.model is None else _chat_model(plan.model)
        self.short_term = ShortTermAgent(
            store=self.windows,
            rules=SessionRules(settings.memory, promoter, Triggers(plan)),
            outbox=hot.outbox,
            dead_letters=dead_letters,
            metrics=metrics,
            clock=clock,
            topics=topics,
            rerouting=rerouting,
            ratings=self.ratings,
        )
        self.notes = NotesAgent(
            store=self.windows,
            shards=self.shards,
            outbox=hot.outbox,
            metrics=metrics,
            clock=clock,
            topics=topics,
            memory=settings.memory,
            important=settings.lifecycle.active,
            opened=self.short_term.quiet.heard,
        )
        self.short_term.when_ended(self.notes.session_ended)
        self.precedence = IntakeFirst(
            lambda: hot.lag()[topics.conversations], settings.long_term.intake_first_seconds
        )
        self.pending_summaries = PendingSummaries()
        self.summaries = SummariesAgent(
            plan=plan,
            folder=settings.data_dir / "memory",
            summariser=None if self._summing_chat is None else ModelSummariser(self._summing_chat, plan),
            extraction=ExtractionProcess(),
            memory=settings.memory,
            pending=self.pending_summaries,
            shards=self.shards,
            outbox=hot.outbox,
            dead_letters=dead_letters,
            rerouting=rerouting,
            metrics=metrics,
            precedence=self.precedence,
            backlog=lambda: hot.lag()[topics.long_term],
            topics=topics,
        )
        self.reembedder = Reembedder(self.shards, self.precedence, settings.embedder())
        self.refining = (
            None
            if judge is None or self._chat is None
            else RefiningAgent(
                refiner=ModelRefiner(self._chat),
                concurrency=max(1, judge.concurrency // 4),  # ratings hold up commits: most places are theirs
                shards=self.shards,
                outbox=hot.outbox,
                metrics=metrics,
                clock=clock,
                topics=topics,
                settings=settings.long_term,
                backlog=lambda: hot.lag()[topics.long_term],
            )
        )
        self.analytics = AnalyticsAgent(
            folder=settings.data_dir / "analytics",
            shards=self.shards,
            metrics=metrics,
            clock=clock,
            precedence=self.precedence,
            lifecycle=settings.lifecycle,
            enabled=settings.analytics.enabled,
            memory=memory.copies,
        )
        self.long_term = LongTermAgent(
            shards=self.shards,
            dead_letters=dead_letters,
            metrics=metrics,
            clock=clock,
            precedence=self.precedence,
            notes=self.notes,
            windows=self.short_term,
            rerouting=rerouting,
            refining=self.refining,
            summaries=self.summaries,
            read=partial(records_between, settings.kafka, topics.long_term),
            forgot=self._forgot,
        )
        self.former = FormerShards(
            data_dir=settings.data_dir,
            shards=self.shards,
            summaries=self.summaries,
            analytics=self.analytics,
            rerouting=rerouting,
            long_term=settings.long_term,
            lifecycle=settings.lifecycle,
            end=partial(end_of, settings.kafka, topics.long_term),
            read=partial(records_between, settings.kafka, topics.long_term),
        )
        self.retention = RetentionAgent(
            shards=self.shards, clock=clock, read=partial(records_between, settings.kafka, topics.long_term)
        )
        self.lifecycle = LifecycleAgent(
            shards=self.shards,
            outbox=hot.outbox,
            metrics=metrics,
            clock=clock,
            topics=topics,
            lifecycle=settings.lifecycle,
        )
        self.cleanup = CleanupAgent(
            shards=self.shards,
            outbox=hot.outbox,
            metrics=metrics,
            topics=topics,
            partitions=partitions,
            lifecycle=settings.lifecycle,
        )
        self.recall = Recall(
            shards=self.shards,
            outbox=hot.outbox,
            metrics=metrics,
            clock=clock,
            topics=topics,
            partitions=partitions,
            lifecycle=settings.lifecycle,
        )
        large = {"max.message.bytes": str(MAX_RECORD_BYTES)}
        hot.table("exchanges", self.windows.exchanges, partitions=partitions, topic_configs=large)
        hot.table(
            "sessions",
            self.windows.sessions,
            partitions=partitions,
            on_recovered=self._recovered,
            topic_configs=large,
        )
        hot.table("notes", self.windows.notes, partitions=partitions)
        hot.table("pending-summaries", self.pending_summaries, partitions=partitions, topic_configs=large)
        hot.agent(topics.conversations, self.short_term.handle, name="short-term")
        hot.agent(topics.long_term, self.long_term.handle, name="long-term")
        hot.agent(topics.summary_requests, self.summaries.handle, name="summaries")
        hot.when_sought.append(self._sought)
        hot.when_reconnected.append(self._same_topics)
        hot.before_commit.append(self._same_offsets)
        hot.when_lost.append(self._lost)
        self.faust.on_partitions_revoked.connect(self._revoked)
        self.faust.on_partitions_assigned.connect(self._assigned)
        self.recovered = False
        self._newest_forgetting = 0
        self._no_broker = ""
        self._api: AsgiService | None = None
        self._listener: socket.socket | None = None
        self._timers: list[asyncio.Task[None]] = []
        self._catching_up: set[asyncio.Task[None]] = set()
        self.port = settings.http.port
        self.forwarding = Forwarding(partial(hot.owner, "sessions"), lambda: self.url)

    async def start(self, *, patient: bool = False) -> None:
        """Start, and return when partitions are assigned and tables are recovered.

        A patient worker waits for its broker, and says so where it is asked for its health. Raises
        `BrokerUnavailable`, `DataDirError`, `SettingsError` or what else keeps the worker from working.
        """
        _usable(self.settings.data_dir)
        for warning in self.summary_plan.warnings:
            log.warning("%s", warning)
        await self._serve()
        await self._find_broker(patient)
        self.embedding.start()
        await self.faust.start()
        if self.ratings is not None:
            self.ratings.start(self.short_term.answered)
        if self.refining is not None:
            self.refining.start()
        lifecycle = self.settings.lifecycle
        self._every(TICK_SECONDS, self._tick)
        self._every(LOOK_SECONDS, self._look_for_topics)
        self._every(NOTES_SECONDS, self._drop_notes)
        self._every(lifecycle.recompute_seconds, self._age)
        self._every(self.settings.long_term.save_seconds, self.lifecycle.save_indexes)
        self._every(TICK_SECONDS, self.lifecycle.fill_rows)
        self._every(self.settings.long_term.access_seconds, self.recall.tell_accesses)
        self._every(SWEEP_SECONDS, self.summaries.sweep)
        self._every(SWEEP_SECONDS, self._drop_replays)
        self._every(FORMER_SECONDS, self.former.tick)
        self._every(RETENTION_SECONDS, self.retention.tick)
        self._every(self.settings.analytics.seconds, self.analytics.tick)

    async def stopped(self) -> None:
        """Wait until the worker stops; raises what stopped it."""
        ends = [asyncio.ensure_future(wait) for wait in (self.hot.until_halted(), self.faust.wait_until_stopped())]
        try:
            done, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            for end in done:
                await end
        finally:
            for end in ends:
                end.cancel()
        if (reason := self.faust.crash_reason) is not None:
            raise SiltstoneError(f"the worker crashed: {type(reason).__name__}: {reason}") from reason

    async def stop(self) -> None:
        """Commit what is done, close the shards, end."""
        at_work = (*self._timers, *self._catching_up)
        for task in at_work:
            task.cancel()
        await asyncio.gather(*at_work, return_exceptions=True)
        if self._api is not None:
            await self._api.stop()
        await self.forwarding.close()
        if self._listener is not None:
            self._listener.close()
        if self.ratings is not None:
            await self.ratings.stop()
        if self.refining is not None:
            await self.refining.stop()
        await self.summaries.stop()
        for chat in (self._chat, self._summing_chat):
            if chat is not None:
                await chat.close()
        await self.reembedder.close()
        try:
            async with asyncio.timeout(SETTLE_SECONDS):
                await self.recall.tell_accesses()
                await self.faust.stop()
        except TimeoutError:
            self.hot.abandon()
            log.warning("the broker did not take what was due: it is read again at the next start")
        await self.long_term.stop()
        await asyncio.to_thread(self.analytics.close)
        await self.shards.close()
        await self.shards.models.stop()

    @property
    def embedding(self) -> Embedding:
        """The model of the shards; `reembedder` changes it."""
        return self.shards.models.current

    @property
    def ready(self) -> bool:
        """Tables recovered, shards open, model loaded."""
        return not self.not_ready()

    def not_ready(self) -> list[str]:
        """Why the worker is not ready; empty when it is."""
        reasons = []
        if self.hot.halted is not None:
            reasons.append(f"the worker has stopped: {self.hot.halted}")
        if self._no_broker:
            reasons.append(self._no_broker)
        elif self.recovered and not self.hot.reaches_broker:
            reasons.append(str(BrokerUnavailable(self.settings.kafka.bootstrap_servers)))
        if not self.recovered:
            reasons.append("the short-term tables are being recovered")
        if not self.embedding.ready:
            reasons.append("the embedding model is being loaded")
        elif not self.shards.ready:
            reasons.append("the shards are being opened")
        elif self.long_term.behind:
            reasons.append(f"shards are being compared with the log, or filled up: {self.long_term.behind}")
        return reasons

    @property
    def url(self) -> str:
        """Where other workers reach this one."""
        host = self.settings.http.host
        return self.settings.http.advertised_url or f"http://{f'[{host}]' if ':' in host else host}:{self.port}"

    def partition_of(self, user_id: str) -> int:
        """The partition, and so the shard, of a user."""
        return partition_of(user_id, self.settings.kafka.partitions)

    async def state_counts(self, at: int) -> dict[State, int]:
        """Memories of this worker's shards by state, as of `at` (epoch ms); nothing is written."""
        totals = dict.fromkeys(State, 0)
        for counts in await self.shards.call_each(Shard.state_counts, at, self.settings.lifecycle):
            for state, count in counts.items():
                totals[state] += count
        return totals

    async def _find_broker(self, patient: bool) -> None:
        delay = FIRST_RETRY
        while True:
            try:
                await ensure_topics(self.settings.kafka)
                if not self.settings.kafka.create_topics:
                    await require_topics(self.settings.kafka)
                self._no_broker = ""
                return
            except BrokerUnavailable as exc:
                if not patient:
                    raise
                self._no_broker = str(exc)
                log.warning("%s; next attempt in %.0f s", exc, delay)
            await asyncio.sleep(delay)
            delay = min(LONGEST_RETRY, delay * 2)

    async def _revoked(self, _app: Any, /, *arguments: Any, signal: Any, **_: Any) -> None:
        (revoked,) = arguments
        self.long_term.revoke(frozenset(tp.partition for tp in revoked if tp.topic == self.topics.long_term))

    async def _assigned(self, _app: Any, /, *arguments: Any, signal: Any, **_: Any) -> None:
        (assigned,) = arguments
        self.recovered = False
        self.hot.connect()
        ours = frozenset(tp.partition for tp in assigned if tp.topic == self.topics.long_term)
        self.shards.own(ours)
        self.long_term.own(ours)
        if self.refining is not None:
            self.refining.own(ours)

    async def _recovered(self) -> None:
        await self.short_term.recovered()
        self.notes.recovered()
        self.recovered = True

    async def _sought(self) -> None:
        begun_anew = [self.short_term.begin_anew(p) for p in self.hot.read_from_start(self.topics.conversations)]
        # Before the new log is read: its sessions' rows, at smaller offsets, would give way to the former one's.
        if any(begun_anew) and not await self.hot.outbox.settle():
            self.hot.halt(BrokerUnavailable(self.settings.kafka.bootstrap_servers), "an earlier log's sessions")
        committed = self.hot.committed(self.topics.long_term)
        for partition in self.long_term.behind:
            if partition in committed:
                task = asyncio.create_task(self._catch_up(partition, committed[partition]))
                self._catching_up.add(task)
                task.add_done_callback(self._catching_up.discard)

    async def _catch_up(self, partition: int, committed: int) -> None:
        while True:
            try:
                await self.long_term.catch_up(partition, committed)
                return
            except BrokerUnavailable as exc:  # it goes on where it was
                log.warning("shard %d: %s", partition, exc)
                await asyncio.sleep(FIRST_RETRY)
            except Exception as exc:
                self.hot.halt(exc, f"shard {partition}")
                return

    def _lost(self, lost: Lost) -> None:
        """What was deleted before it was read is lost, and never passed over in silence."""
        self.metrics.lost_records.labels(lost.topic).inc(lost.end - lost.start)
        log.warning(
            "%s[%d]: offsets %d to %d were deleted before they were read; the oldest record that is there is %s",
            lost.topic,
            lost.partition,
            lost.start,
            lost.end - 1,
            "none" if lost.next_at is None else f"of {iso(lost.next_at)}",
        )

    async def _same_topics(self) -> None:
        """Raises `BrokerEmptied` where the broker has lost topics, or offsets that it was told."""
        while True:
            try:
                if lost := await missing_topics(self.settings.kafka):
                    raise BrokerEmptied(lost)
                break
            except BrokerUnavailable:
                await asyncio.sleep(FIRST_RETRY)
        await self._same_offsets()

    async def _look_for_topics(self) -> None:
        """A topic that is gone takes nothing and refuses nothing: a producer would wait for it for twenty minutes.

        Raises `BrokerEmptied`: the worker starts anew, and has it created, or says what is to be created.
        """
        if self.hot.outbox.waits() < LOOK_SECONDS:
            return
        with contextlib.suppress(BrokerUnavailable):  # that it is waited for is in its health already
            if lost := await missing_topics(self.settings.kafka, also=self.hot.changelogs):
                raise BrokerEmptied(lost)

    async def _same_offsets(self) -> None:
        """Raises `BrokerEmptied` where the broker has lost offsets that it was told."""
        if lost := await self.hot.forgotten():
            raise BrokerEmptied(lost)

    async def _tick(self) -> None:
        if not self.recovered:
            return
        await self.short_term.note_silence(self.settings.memory)
        self.short_term.forget_expired(self.settings.memory)
        if self.ratings is not None:
            self.ratings.tick()
        self.precedence.must_wait()
        self.metrics.sessions.set(len(self.windows.sessions))
        for topic, lag in self.hot.lag().items():
            self.metrics.lag.labels(topic).set(lag)

    async def _age(self) -> None:
        await self.cleanup.tick(await self.lifecycle.recompute())

    async def _drop_notes(self) -> None:
        if self.recovered:
            self.notes.forget_expired()

    def _forgot(self) -> None:
        self.analytics.forgot()
        self._newest_forgetting = now_ms()

    async def _drop_replays(self) -> None:
        """One that is at work now may be interrupted later."""
        if self._newest_forgetting:
            await asyncio.to_thread(drop_interrupted, self.settings.data_dir, self._newest_forgetting)

    def _every(self, seconds: float, work: Callable[[], Awaitable[None]]) -> None:
        async def run() -> None:
            while True:
                await asyncio.sleep(seconds)
                try:
                    await work()
                except Exception as exc:
                    self.hot.halt(exc, "a timer")
                    return

        self._timers.append(asyncio.create_task(run()))

    async def _serve(self) -> None:
        host, port = self.settings.http.host, self.settings.http.port
        listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except OSError as exc:
            listener.close()
            raise SiltstoneError(
                f"cannot serve HTTP at {host}:{port}: {exc.strerror}; choose another with http.port or --port"
            ) from exc
        self.port = listener.getsockname()[1]
        self._listener = listener  # uvicorn is given its descriptor alone
        self.hot.advertise(self.url)
        self._api = AsgiService(
            build(self),
            host=host,
            port=self.port,
            uvicorn_options={"fd": listener.fileno(), "log_level": "warning", "access_log": False},
        )
        await self._api.start()


def _estimate(user: str, assistant: str) -> int:
    return estimate(user, assistant).value


def _chat_model(settings: JudgeSettings) -> ChatModel:
    from streams.clients.chat import ChatModel  # its packages take most of a second, and most workers need none

    return ChatModel(settings)


def _usable(folder: Path) -> None:
    """Raises `DataDirError` where nothing can be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise DataDirError(folder, exc.strerror or str(exc)) from exc
    if not os.access(folder, os.W_OK | os.X_OK):
        raise DataDirError(folder, "permission denied")


def _faust_app(settings: Settings) -> faust.App:
    kafka = settings.kafka
    return faust.App(
        kafka.group_id,
        broker=[f"kafka://{server.strip()}" for server in kafka.bootstrap_servers.split(",")],
        broker_credentials=_credentials(kafka),
        store="memory://",
        datadir=str(settings.data_dir / "faust"),
        web_enabled=False,
        topic_partitions=kafka.partitions,
        topic_replication_factor=kafka.replication,
        topic_disable_leader=True,
        topic_allow_declare=True,
        consumer_auto_offset_reset="earliest",
        stream_wait_empty=False,
        # A copy of another worker's rows would be taken for ours: by what looks for silence and for expiry.
        table_standby_replicas=0,
        broker_max_poll_records=16_000,
        broker_commit_interval=kafka.commit_seconds,
        broker_session_timeout=kafka.session_timeout_seconds,
        broker_rebalance_timeout=kafka.rebalance_timeout_seconds,
        broker_heartbeat_interval=kafka.heartbeat_seconds,
        consumer_group_instance_id=kafka.instance_id or None,
        producer_linger=0.02,
        producer_max_batch_size=BATCH_BYTES,
        producer_max_request_size=MAX_RECORD_BYTES,
        # Events wait for as long as an embedding service is down. Our log says so once a minute; Faust's would, for
        # each partition, every few seconds.
        stream_processing_timeout=86_400.0,
        broker_commit_livelock_soft_timeout=86_400.0,
    )


def _credentials(kafka: KafkaSettings) -> Any:
    context: ssl.SSLContext | None = ssl_context(kafka)
    if kafka.security_protocol.startswith("SASL"):
        return faust.SASLCredentials(
            username=kafka.sasl_username,
            password=kafka.sasl_password.get_secret_value(),
            mechanism=SASLMechanism(kafka.sasl_mechanism),
            ssl_context=context,
        )
    return faust.SSLCredentials(context) if context else None
