"""What everything in a worker is made with."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import faust

from schemas.settings import Settings
from schemas.topics import Topics, partition_of
from streams.backlog_gate import BacklogGate
from streams.clients.log_reader import records_between
from streams.clock import Clock, clock_of
from streams.dead_letters import DeadLetters
from streams.event_log import EventLog
from streams.hotpath import HotPath
from streams.inbox import Inbox, U
from streams.jobs.retention import Read
from streams.metrics import Metrics
from streams.rerouting import Rerouting
from streams.wiring.faust_app import faust_app


@dataclass(frozen=True, slots=True)
class WorkerContext:
    """Settings, names, clock and counters; Faust, and the ways by which records leave."""

    settings: Settings
    topics: Topics
    metrics: Metrics
    clock: Clock
    faust: faust.App
    hot: HotPath
    event_log: EventLog
    dead_letters: DeadLetters
    rerouting: Rerouting
    gate: BacklogGate

    @classmethod
    def of(cls, settings: Settings) -> Self:
        kafka = settings.kafka
        topics, metrics, app = Topics.with_prefix(kafka.topic_prefix), Metrics(), faust_app(settings)
        hot = HotPath(app, kafka.isolation_level)
        dead_letters = DeadLetters(hot.outbox, topics.dead_letters, metrics)
        hot.outbox.when_refused = dead_letters.keep_refused
        return cls(
            settings=settings,
            topics=topics,
            metrics=metrics,
            clock=clock_of(settings.lifecycle.clock),
            faust=app,
            hot=hot,
            event_log=EventLog(hot.outbox, topics),
            dead_letters=dead_letters,
            rerouting=Rerouting(hot.outbox, metrics, kafka.partitions),
            gate=BacklogGate(partial(hot.backlog, topics.conversations), settings.long_term.intake_first_seconds),
        )

    @property
    def partitions(self) -> int:
        return self.settings.kafka.partitions

    def inbox(self, decode: Callable[[Any], U]) -> Inbox[U]:
        """For the records of a topic, which `decode` reads."""
        return Inbox(decode, self.dead_letters, self.rerouting)

    def partition_of(self, user_id: str) -> int:
        """The partition, and so the shard, of a user."""
        return partition_of(user_id, self.partitions)

    @property
    def long_term_backlog(self) -> Callable[[], int]:
        """How many records of `long-term` are not yet processed."""
        return partial(self.hot.backlog, self.topics.long_term)

    @property
    def read_long_term(self) -> Read:
        """The records of a partition of `long-term` between two offsets."""
        return partial(records_between, self.settings.kafka, self.topics.long_term)
