"""Reports the state of a worker's consumer, and changes nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, cast

import faust
from aiokafka.errors import KafkaError
from faust.transport.drivers import aiokafka as driver
from faust.types import TP

from schemas.errors import NotReady
from streams.kafka.commit.attempts import Failing
from streams.kafka.faust.consumer import Consumer
from streams.kafka.faust.recovery import KeptTable, KeptTables
from streams.kafka.faust.shared import HotState
from streams.kafka.faust.threads import ConsumerThread
from tables.windows.window_stores import WindowStores


class Restored(NamedTuple):
    """A recovered partition of a table. Its changelog begins at offset `start`.

    `rows` is the number of rows that were read or written since the changelog was last read from its start.
    """

    table: str
    topic: str
    partition: int
    start: int
    rows: int


class ConsumerStatus(HotState):
    """Reports the progress of reading, commits and recovery, and whether the group and the broker answer."""

    def __init__(self, app: faust.App, stores: WindowStores | None, isolation_level: str) -> None:
        super().__init__(stores, isolation_level)
        self.app = app

    def _committable(self, topic: str) -> dict[int, int]:
        ledgers = cast(Consumer, self.app.consumer)._ledgers
        reached = {tp.partition: ledger.committable() for tp, ledger in ledgers.items() if tp.topic == topic}
        return {partition: offset for partition, offset in reached.items() if offset is not None}

    def readable_before(self, topic: str, partition: int) -> int | None:
        """Return the offset before which all records' effects can be read; None if the partition is not ours."""
        consumer, tp = cast(Consumer, self.app.consumer), TP(topic, partition)
        if tp not in consumer.sought or tp not in consumer.assignment():
            return None
        return max(consumer.done(tp), self._readable.get(tp, 0))

    async def until_readable(self, topic: str, partition: int, offset: int) -> bool:
        """Wait until the effects of the record at `offset` can be read, and return True.

        Returns False if the partition is not ours, or when it moves. Waits without end if no such record is ever
        written.
        """
        before = self.readable_before(topic, partition)
        if before is None or before > offset:
            return before is not None
        return await self.waiters.until(TP(topic, partition), offset)

    async def is_written(self, topic: str, partition: int, offset: int) -> bool:
        """True if the end of the log is after this offset, or if the partition is not ours.

        If the offset is beyond the known end, asks the broker for the end. Concurrent callers share one request.
        Raises `NotReady` if the broker does not answer.
        """
        consumer, tp = cast(Consumer, self.app.consumer), TP(topic, partition)
        before = self.readable_before(topic, partition)
        if before is None or offset < max(before, consumer.highwater(tp) or 0):
            return True
        if (asking := self._asking_ends.get(topic)) is None:
            asking = self._asking_ends[topic] = asyncio.ensure_future(self.ends(topic))
            asking.add_done_callback(partial(self._asked_ends, topic))
        try:
            said = await asyncio.shield(asking)
        except (KafkaError, OSError) as exc:
            raise NotReady(f"the broker does not give the end of the log: {type(exc).__name__}; ask again") from exc
        return offset < said.get(partition, offset + 1)

    def _asked_ends(self, topic: str, asked: asyncio.Future[dict[int, int]]) -> None:
        """Forget a finished request for end offsets.

        Mark its error as retrieved: if all callers were cancelled, asyncio would log the error.
        """
        self._asking_ends.pop(topic, None)
        if not asked.cancelled():
            asked.exception()

    @property
    def reaches_broker(self) -> bool:
        """True if our consumer group's coordinator answered the last request."""
        consumer = cast(Any, self.app.consumer)._thread._consumer
        return consumer is not None and consumer._coordinator.coordinator_id is not None

    def processed(self, topic: str, ends: Mapping[int, int] | None = None) -> int:
        """Return the number of processed records of the topic: the sum of our partitions' committable offsets.

        With `ends`, an offset counts only up to the end of its partition. So the result is `sum(ends.values())` when
        all records before these ends are processed.
        """
        done = self._committable(topic)
        if ends is None:
            return sum(done.values())
        return sum(min(done.get(partition, 0), end) for partition, end in ends.items())

    async def ends(self, topic: str) -> dict[int, int]:
        """Ask the broker for the offset after the newest record of each of our partitions of the topic."""
        consumer = cast(Consumer, self.app.consumer)
        ours = [tp for tp in consumer.assignment() if tp.topic == topic]
        return {tp.partition: end for tp, end in (await consumer.highwaters(*ours)).items()}

    def committed(self, topic: str) -> dict[int, int]:
        """Return the group's offset in each of our partitions of the topic; 0 if there is none.

        Partitions that were not sought since their assignment are left out.
        """
        consumer = cast(Consumer, self.app.consumer)
        ours = [tp for tp in consumer.sought if tp.topic == topic and tp in consumer.assignment()]
        return {tp.partition: consumer._committed_offset.get(tp) or 0 for tp in ours}

    def read_from_start(self, topic: str) -> list[int]:
        """Return our partitions of the topic that have no committed offset, if their log begins at offset 0."""
        consumer = cast(Consumer, self.app.consumer)
        return [tp.partition for tp in consumer.from_start if tp.topic == topic]

    def has_started_over(self) -> bool:
        """True if this worker has committed an offset in each of its partitions of recreated topics.

        Empty partitions do not need a commit. False if the worker has no partition of these topics.
        """
        consumer = cast(Consumer, self.app.consumer)
        ours = [tp for tp in consumer.assignment() if tp.topic in self.started_over]
        done = cast(ConsumerThread, consumer._thread).committed
        return bool(ours) and all(tp in done or consumer.highwater(tp) == 0 for tp in ours)

    def moved(self, topic: str) -> dict[int, int]:
        """Return the committed offsets that another tool has set in our partitions of the topic, by partition."""
        moved = cast(ConsumerThread, cast(Any, self.app.consumer)._thread).moved
        return {tp.partition: offset for tp, offset in moved.items() if tp.topic == topic}

    def recovering(self) -> dict[int, tuple[int, int]]:
        """Return, by partition in recovery, the number of changelog records read, and the total number to read."""
        return cast(KeptTables, self.app.tables).kept_recovery.read_of_all()

    async def restored(self) -> list[Restored]:
        """Return a `Restored` for each table and each of our partitions that is recovered."""
        consumer = cast(Consumer, self.app.consumer)
        ours = {TP(*tp) for tp in consumer.assignment()}
        tables = {
            TP(table.changelog_topic_name, partition): table
            for table in self.app.tables.values()
            if isinstance(table, KeptTable)
            for partition in range(table.partitions or 0)
        }
        found = {tp: table for tp, table in tables.items() if tp in ours}
        if not found:
            return []
        starts = await consumer._earliest(found)
        return [
            Restored(table.name, tp.topic, tp.partition, starts[tp], table.positions.rows[tp.partition])
            for tp, table in found.items()
            if tp.partition in table.positions.rows  # otherwise its rows are still being read
        ]

    async def forgotten(self) -> list[str]:
        """Return the topics for which the broker reports a smaller committed offset than it acknowledged to us."""
        thread = cast(Any, self.app.consumer)._thread
        told = {
            driver.ensure_aiokafka_TP(tp): offset for tp, offset in thread.known.items() if tp.topic in self.topics
        }
        if not told:
            return []
        known = await thread.call_thread(thread._consumer._coordinator.fetch_committed_offsets, list(told))
        return sorted({tp.topic for tp, offset in told.items() if tp not in known or known[tp].offset < offset})

    @property
    def generation(self) -> int:
        """The consumer group's generation in which the partitions were assigned."""
        return int(self.app.consumer_generation_id)

    async def is_member(self) -> bool:
        """Ask the group whether we belong to its current generation."""
        thread = cast(Any, self.app.consumer)._thread
        return bool(await thread.call_thread(thread.is_member))

    def owner(self, table: str, partition: int) -> str | None:
        """Return the URL of the worker that owns this partition of the table, by the last assignment."""
        topic = self.app.tables[table].changelog_topic.get_topic_name()
        members = cast(Any, self.app.assignor).table_metadata(topic)
        return next((url.rstrip("/") for url, held in members.items() if partition in held.get(topic, ())), None)

    def lag(self) -> dict[str, int]:
        """Return, by topic, the number of records in our partitions that are not committed yet."""
        return self._by_topic(self.lag_by_partition())

    def lag_by_partition(self) -> dict[tuple[str, int], int]:
        """Return, by topic and partition, the number of records that are not committed yet."""
        return self._lag_from(cast(Consumer, self.app.consumer).kept)

    def backlog(self, topic: str) -> int:
        """Return the number of records in our partitions of the topic that are not processed yet."""
        return self._by_topic(self._lag_from(cast(Consumer, self.app.consumer).done))[topic]

    def _lag_from(self, reached: Callable[[TP], int]) -> dict[tuple[str, int], int]:
        consumer = cast(Consumer, self.app.consumer)
        return {
            (tp.topic, tp.partition): max(0, end - reached(tp))
            for tp in consumer.assignment()
            if tp.topic in self.topics and (end := consumer.highwater(tp)) is not None
        }

    def _by_topic(self, behind: Mapping[tuple[str, int], int]) -> dict[str, int]:
        totals = dict.fromkeys(self.topics, 0)
        for (topic, _), records in behind.items():
            totals[topic] += records
        return totals

    def not_committing(self) -> Failing | None:
        """Return the time for which commits have failed, and the reason.

        Return None if commits succeed, or if there is nothing to commit.
        """
        consumer = cast(Consumer, self.app.consumer)
        ours = [tp for tp in consumer.assignment() if tp.topic in self.topics]
        if not any(consumer.done(tp) > consumer.kept(tp) for tp in ours):
            return None
        topic = self.outbox.waits_for
        return self.attempts.failing(_not_taken_by(topic) if topic else "")

    def not_marking(self) -> Failing | None:
        """Return the time for which a changelog has not accepted its end mark, and the reason; None if all have.

        Without the mark, the recovery cannot begin to read.
        """
        topic, failing = self.outbox.waits_for, self.attempts.failing("")
        return failing._replace(reason=_not_taken_by(topic)) if failing and topic else None


def _not_taken_by(topic: str) -> str:
    return f"{topic} has not accepted the due records"
