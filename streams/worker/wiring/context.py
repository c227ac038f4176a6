"""The dependencies of the parts of a worker, and of the pipelines of a replay."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Final, Self

import faust

from schemas.settings import Settings
from schemas.topics import EXCHANGES, NOTES, PENDING_SUMMARIES, SESSIONS, Topics, changelog_of, partition_of
from streams.kafka.broker_link import BrokerLink
from streams.kafka.clients.log_reader import records_between
from streams.kafka.commit.outbox import Outbox
from streams.kafka.dead_letters import DeadLetters
from streams.kafka.event_log import EventLog
from streams.kafka.faust.hot_path import HotPath
from streams.kafka.inbox import Inbox, U
from streams.kafka.rerouting import Rerouting
from streams.memory.retention import Read
from streams.runtime.backlog_gate import BacklogGate
from streams.runtime.clock import Clock, clock_of
from streams.runtime.memory_shares import memory_here
from streams.telemetry.activity.message_flow import Flow
from streams.telemetry.activity.readings import Readings
from streams.telemetry.metrics import Metrics
from streams.telemetry.spans import Spans
from streams.worker.wiring.faust_app import faust_app
from streams.worker.wiring.telemetry import spans_of
from tables.windows.resident import Resident
from tables.windows.rows_by_user import beginning_of
from tables.windows.window_stores import DiskRows, WindowStores

#: The key prefix of each table's rows on the disk.
PREFIXES: Final = {EXCHANGES: b"e", NOTES: b"n", PENDING_SUMMARIES: b"p", SESSIONS: b"s"}


@dataclass(frozen=True)
class Context:
    """The dependencies of a pipeline in a worker or a replay, such as settings, clock, and the outbox for records.

    `on_failure` is called with an error that must not be ignored, and the name of the place where it happened.
    `spans` makes spans of the work.
    """

    settings: Settings
    topics: Topics
    metrics: Metrics
    clock: Clock
    outbox: Outbox
    gate: BacklogGate
    on_failure: Callable[[BaseException, str], None]
    spans: Spans

    @cached_property
    def event_log(self) -> EventLog:
        return EventLog(self.outbox, self.topics, self.spans)

    @cached_property
    def dead_letters(self) -> DeadLetters:
        return DeadLetters(self.outbox, self.topics.dead_letters, self.metrics)

    @cached_property
    def flow(self) -> Flow:
        """The live flow of messages and memories, for the dashboard."""
        return Flow()

    @cached_property
    def readings(self) -> Readings:
        return Readings(self.metrics)

    @cached_property
    def resident(self) -> Resident:
        """The cache of decoded window rows."""
        limit = self.settings.memory.resident_bytes
        return Resident(memory_here() // 16 if limit is None else limit)

    def inbox(self, decode: Callable[[Any], U]) -> Inbox[U]:
        """Return an inbox for the records of a topic. It reads the records with `decode`."""
        return Inbox(decode, self.dead_letters, Rerouting(self.outbox, self.metrics, self.partitions))

    @property
    def partitions(self) -> int:
        return self.settings.kafka.partitions


@dataclass(frozen=True)
class WorkerContext(Context):
    """The context of a worker, which also has Faust's app (`faust`) and its overrides (`hot`)."""

    faust: faust.App
    hot: HotPath

    @classmethod
    def of(cls, settings: Settings, spans: Spans | None = None) -> Self:
        """Build the context from the settings. If `spans` is given, it replaces the spans of the settings."""
        kafka = settings.kafka
        topics, app = Topics.with_prefix(kafka.topic_prefix), faust_app(settings)
        hot = HotPath(app, kafka.isolation_level, WindowStores(settings.data_dir / "windows"))
        context = cls(
            settings=settings,
            topics=topics,
            metrics=Metrics(),
            clock=clock_of(settings.lifecycle.clock),
            outbox=hot.outbox,
            gate=BacklogGate(partial(hot.backlog, topics.conversations), settings.long_term.intake_first_seconds),
            on_failure=hot.halt,
            spans=spans_of(settings) if spans is None else spans,
            faust=app,
            hot=hot,
        )
        hot.outbox.when_refused = context.dead_letters.keep_refused
        return context

    @property
    def stores(self) -> WindowStores:
        """The windows on this worker's disk."""
        assert self.hot.stores is not None
        return self.hot.stores

    def erase_rows(self, partition: int, user_id: str) -> None:
        """Schedule the erasure of the user's deleted windows, notes and pending summaries from the disk."""
        self.stores.erase_later(partition, beginning_of(user_id))

    def kept(self, table: str) -> DiskRows:
        """Return a table's rows on this worker's disk, with the position of its changelog."""
        return self.stores.table(changelog_of(self.settings.kafka.group_id, table), PREFIXES[table])

    def partition_of(self, user_id: str) -> int:
        """Return the partition of a user. The user's shard has the same number."""
        return partition_of(user_id, self.partitions)

    @property
    def long_term_backlog(self) -> Callable[[], int]:
        """A function that returns the number of records of `long-term` that are not yet processed."""
        return partial(self.hot.backlog, self.topics.long_term)

    @property
    def read_long_term(self) -> Read:
        """A function that reads the records of a partition of `long-term` between two offsets."""
        return partial(records_between, self.settings.kafka, self.topics.long_term)

    def broker_link(self, recovered: Callable[[], bool]) -> BrokerLink:
        """Return the link to the broker. `recovered` tells whether all tables are recovered."""
        settings = self.settings
        return BrokerLink(
            settings.kafka,
            settings.data_dir,
            self.hot,
            self.metrics,
            recovered,
            settings.checkpoints.log_ms,
            settings.access.tokens,
        )
