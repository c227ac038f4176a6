"""Faust made fast and lossless: what is installed in an app, its tables and its agents."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, cast

import faust
from aiokafka.errors import KafkaError
from faust.transport.drivers import aiokafka as driver
from faust.types import TP
from yarl import URL

from streams.kafka.clients.broker import NOT_ALLOWED
from streams.kafka.clients.closing import stop_when_stopped
from streams.kafka.clients.header_names import take_any_header_name
from streams.kafka.commit.kept_partitions import KeptPartitions
from streams.kafka.commit.marks import Progress
from streams.kafka.commit.outbox import StateStore
from streams.kafka.faust.assignor import HeldAssignor, HeldState
from streams.kafka.faust.consumer import Consumer, ConsumingTransport
from streams.kafka.faust.consumer_state import ASK_AGAIN_SECONDS
from streams.kafka.faust.delivery import ByBatch, RecordsSchema
from streams.kafka.faust.recovery import KeptTable, KeptTables
from streams.kafka.faust.sources import check_faust
from streams.kafka.faust.status import ConsumerStatus
from streams.runtime.batch_handler import BatchHandler
from tables.windows.window_stores import WindowStores

log = logging.getLogger(__name__)

#: Batches that may wait in front of an agent before their partition's fetching pauses.
WAITING_BATCHES = 16

#: As many of all changelogs together, in front of their tables.
WAITING_CHANGELOG_BATCHES = 64

#: Faust resumes a changelog that recovery is done with where this is 1.
RECOVERY_BUFFER = 2


class HotPath(ConsumerStatus):
    """Installs itself in a Faust app; then topics are read in batches and tables write behind.

    hot = HotPath(app)
    hot.table("sessions", store, partitions=8)
    hot.agent("siltstone.conversations", handle)      # async def handle(partition, records)
    """

    def __init__(
        self, app: faust.App, isolation_level: str = "read_committed", stores: WindowStores | None = None
    ) -> None:
        check_faust()
        take_any_header_name()
        stop_when_stopped()
        super().__init__(app, stores, isolation_level)
        app.conf.Stream = cast(Any, ByBatch)
        app.conf.TableManager = cast(Any, KeptTables)
        app.conf.stream_buffer_maxsize = WAITING_CHANGELOG_BATCHES
        transport = ConsumingTransport(app.conf.broker_consumer, app)
        transport.hot = self
        app.transport = transport
        #: What this worker tells its group of the state that it holds.
        self.state = HeldState()
        app.conf.PartitionAssignor = cast(Any, HeldAssignor)
        cast(HeldAssignor, app.assignor).state = self.state

    def connect(self) -> None:
        """The producer has started: the outbox may send."""
        self.outbox.connect(cast(driver.Producer, self.app.producer)._ensure_producer())

    def table(
        self,
        name: str,
        store: StateStore,
        *,
        partitions: int,
        on_recovered: Callable[[], Awaitable[None]] | None = None,
        records_of: str | None = None,
    ) -> None:
        """A write-behind changelog for the store's rows, whose topic is there when the app starts.

        Tables are written in the order of these calls. No key begins with a zero byte. What this one's changelog says
        to be in the tables `records_of` a topic, the topic's agent is not given again.
        """
        progress = None
        if records_of is not None:
            progress = self._progress[records_of] = Progress(partial(self._committable, records_of))
        table = KeptTable(
            self.app,
            name=name,
            kept=store,
            halt=self.halt,
            mark=self._mark,
            progress=progress,
            on_disk=KeptPartitions(self.stores, self._bring_windows),
            partitions=partitions,
            schema=RecordsSchema(),
            recovery_buffer_size=RECOVERY_BUFFER,
        )
        if on_recovered is not None:
            table.on_recover(on_recovered)
        self.app.tables.add(table)
        self.changelogs.add(table.changelog_topic_name)
        self.outbox.add_table(table.changelog_topic_name, store, table.positions, progress)

    async def _mark(self, changelogs: Mapping[str, Iterable[int]]) -> Mapping[tuple[str, int], int]:
        """Write marks, and retry until it succeeds: without them the ends of the changelogs are unknown."""
        self.attempts.begin()
        while True:
            try:
                await self.app.maybe_start_producer()
                self.connect()
                marked = await self.outbox.mark(changelogs)
            except NOT_ALLOWED as exc:
                self.halt(exc, "a changelog")
            except KafkaError as exc:
                log.error("a changelog takes nothing: %s: %s", type(exc).__name__, exc)
            else:
                self.attempts.succeed()
                return marked
            await asyncio.sleep(ASK_AGAIN_SECONDS)

    async def _bring_windows(self, partitions: Sequence[int]) -> None:
        if self.bring_windows is not None:
            await self.bring_windows(partitions)

    def agent(self, topic: str, handle: BatchHandler, *, name: str, readable_at_once: bool = False) -> None:
        """Add an agent, which gets each fetched batch of a partition of `topic` as one event.

        `readable_at_once`: a batch's changes can be read as soon as `handle` returns, before its effects are done.
        """
        self.topics.add(topic)
        channel = self.app.topic(topic, schema=RecordsSchema(), maxsize=WAITING_BATCHES)

        async def process(stream: Any) -> None:
            async for records in stream:
                message = stream.current_event.message
                try:
                    effects = await handle(message.partition, self._news(message.tp, records))
                    if effects is not None:
                        self.effects[message.tp, message.offset] = asyncio.ensure_future(effects)
                        if readable_at_once and not cast(Consumer, self.app.consumer).is_stale(message):
                            self._readable[message.tp] = message.offset + 1
                            self.waiters.reached(message.tp, message.offset + 1)
                except Exception as exc:
                    if cast(Consumer, self.app.consumer).is_stale(message):
                        log.info("%s[%d]: batch left to the next owner: %s", topic, message.partition, exc)
                    else:
                        self.halt(exc, f"{topic}[{message.partition}]@{records[0].offset}")

        self.app.agent(channel, name=name)(process)

    def _news(self, tp: TP, records: Sequence[Any]) -> Sequence[Any]:
        """Those that are not in the tables: the offset that they are read from may be an old one."""
        progress = self._progress.get(tp.topic)
        known = 0 if progress is None else progress.written(tp.partition)
        if records[0].offset >= known:
            return records
        return [record for record in records if record.offset >= known]

    def abandon(self) -> None:
        """Faust was not stopped in time: what is cancelled from now on ends, and is not started over."""
        for agent in self.app.agents.values():
            if agent.supervisor is not None:  # it was not stopped yet
                agent.supervisor._stopped.set()

    def advertise(self, url: str) -> None:
        """Where this worker serves, for the other members of its group. To be called before the app starts."""
        self.app.conf.canonical_url = URL(url)
