"""Makes Faust fast and lossless: installs the overrides in an app, its tables and its agents."""

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
from streams.kafka.commit.kept_partitions import KeptPartitions
from streams.kafka.commit.marks import Progress
from streams.kafka.commit.outbox import StateStore
from streams.kafka.faust.assignor import HeldAssignor, HeldState
from streams.kafka.faust.consumer import Consumer, ConsumingTransport
from streams.kafka.faust.consumer_state import ASK_AGAIN_SECONDS
from streams.kafka.faust.delivery import ByBatch, RecordsSchema
from streams.kafka.faust.faust_sources import FAUST
from streams.kafka.faust.recovery import KeptTable, KeptTables
from streams.kafka.faust.status import ConsumerStatus
from streams.kafka.patches.patching import patch_aiokafka
from streams.runtime.batch_handler import BatchHandler
from tables.windows.window_stores import WindowStores

log = logging.getLogger(__name__)

#: Maximum number of batches that wait for an agent. At this number, the fetching of their partition pauses.
WAITING_BATCHES = 16

#: Maximum number of batches, of all changelogs together, that wait until they are applied to their tables.
WAITING_CHANGELOG_BATCHES = 64

#: The `recovery_buffer_size` of each table. If it were 1, Faust would continue to read the changelog after the
#: recovery. Then the worker would apply its own rows again, over newer changes.
RECOVERY_BUFFER = 2


class HotPath(ConsumerStatus):
    """Installs itself in a Faust app. Then topics are read in batches, and the outbox writes tables to changelogs.

    hot = HotPath(app)
    hot.table("sessions", store, partitions=8)
    hot.agent("siltstone.conversations", handle)      # async def handle(partition, records)
    """

    def __init__(
        self, app: faust.App, isolation_level: str = "read_committed", stores: WindowStores | None = None
    ) -> None:
        FAUST.check()
        patch_aiokafka()
        super().__init__(app, stores, isolation_level)
        app.conf.Stream = cast(Any, ByBatch)
        app.conf.TableManager = cast(Any, KeptTables)
        app.conf.stream_buffer_maxsize = WAITING_CHANGELOG_BATCHES
        transport = ConsumingTransport(app.conf.broker_consumer, app)
        transport.hot = self
        app.transport = transport
        #: The state that this worker reports to its group.
        self.state = HeldState()
        app.conf.PartitionAssignor = cast(Any, HeldAssignor)
        cast(HeldAssignor, app.assignor).state = self.state

    def connect(self) -> None:
        """Give the app's producer to the outbox. The producer must have started."""
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
        """Add a table whose rows are in `store`, and are written to a changelog before each commit.

        The changelog's topic must exist when the app starts. Tables are written in the order of these calls. No key
        may begin with a zero byte. `on_recovered` is called after each recovery. With `records_of`, the changelog
        also stores the offset before which the records of this topic are in the tables, and the topic's agent does
        not get these records again.
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
        """Write end marks to the changelogs, and return the offsets of the marks.

        Retries until it succeeds, because the ends of the changelogs are unknown without marks.
        """
        self.attempts.begin()
        while True:
            try:
                await self.app.maybe_start_producer()
                self.connect()
                marked = await self.outbox.mark(changelogs)
            except NOT_ALLOWED as exc:
                self.halt(exc, "a changelog")
            except KafkaError as exc:
                log.error("a changelog accepts no records: %s: %s", type(exc).__name__, exc)
            else:
                self.attempts.succeed()
                return marked
            await asyncio.sleep(ASK_AGAIN_SECONDS)

    async def _bring_windows(self, partitions: Sequence[int]) -> None:
        if self.bring_windows is not None:
            await self.bring_windows(partitions)

    def agent(self, topic: str, handle: BatchHandler, *, name: str, readable_at_once: bool = False) -> None:
        """Add an agent that gets each fetched batch of a partition of `topic` as one event.

        If `readable_at_once`, the changes of a batch count as readable as soon as `handle` returns, before the
        effects of the batch are done.
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
        """Return the records without those whose changes are in the tables already.

        Records are read again in this way if the committed offset was stale.
        """
        progress = self._progress.get(tp.topic)
        known = 0 if progress is None else progress.written(tp.partition)
        if records[0].offset >= known:
            return records
        return [record for record in records if record.offset >= known]

    def abandon(self) -> None:
        """Prevent Faust from restarting cancelled agents. Call this if Faust did not stop in time."""
        for agent in self.app.agents.values():
            if agent.supervisor is not None:  # not stopped yet
                agent.supervisor._stopped.set()

    def advertise(self, url: str) -> None:
        """Set this worker's URL for the other members of its group. Call it before the app starts."""
        self.app.conf.canonical_url = URL(url)
