"""Reads a bounded number of the newest records of a topic, outside the consumer group."""

from __future__ import annotations

import heapq
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, asynccontextmanager
from itertools import chain
from operator import itemgetter
from typing import Any, Final, TypeVar

import aiokafka
import aiokafka.errors

from schemas.rights import Right
from schemas.settings import KafkaSettings
from streams.kafka.clients.broker import admin_client, consumer_options, translated
from streams.kafka.clients.log_reader import ends, records_before

T = TypeVar("T")

#: Maximum bytes of a fetch from one partition. It is small, because only the few records that a person looks at are
#: needed.
FETCH_BYTES: Final = 1024 * 1024


async def newest_records(kafka: KafkaSettings, topic: str, most: int, shown: Callable[[Any], T]) -> list[T]:
    """Return the result of `shown` for each of the newest records of a topic, at most `most` of them.

    The results are sorted by the records' Kafka timestamps, newest first. The list is empty if the topic does not
    exist. Memory holds at most twice `most` results at a time.

    Raises `BrokerUnavailable`, `NotAllowed` and `TimeoutError`.
    """
    partitions = [aiokafka.TopicPartition(topic, one) for one in await _partitions_of(kafka, topic)]
    if not partitions:
        return []
    found: list[tuple[tuple[int, int, int], T]] = []
    async with _consumer(kafka, topic) as consumer:
        consumer.assign(partitions)
        starts = await consumer.beginning_offsets(partitions)
        bounds = await ends(consumer, partitions)
        for tp in partitions:
            consumer.seek(tp, max(starts[tp], bounds[tp] - most))
        async with aclosing(records_before(consumer, bounds, kafka.session_timeout_seconds)) as fetched:
            async for by_partition in fetched:
                for tp, records in by_partition.items():
                    new = (
                        ((record.timestamp, -record.partition, record.offset), shown(record))
                        for record in records
                        if record.offset < bounds[tp]
                    )
                    found = heapq.nlargest(most, chain(found, new), key=itemgetter(0))
    return [one for _, one in found]


async def record_at(kafka: KafkaSettings, topic: str, partition: int, offset: int) -> Any | None:
    """Return the record at this offset; None if there is none, or if it was deleted.

    Raises the errors of `newest_records`.
    """
    tp = aiokafka.TopicPartition(topic, partition)
    if partition not in await _partitions_of(kafka, topic):
        return None
    async with _consumer(kafka, topic) as consumer:
        consumer.assign([tp])
        start, end = (await consumer.beginning_offsets([tp]))[tp], (await ends(consumer, [tp]))[tp]
        if not start <= offset < end:
            return None
        consumer.seek(tp, offset)
        async with aclosing(records_before(consumer, {tp: offset + 1}, kafka.session_timeout_seconds)) as fetched:
            async for by_partition in fetched:
                for record in by_partition.get(tp, ()):
                    if record.offset >= offset:
                        return record if record.offset == offset else None
    return None


async def _partitions_of(kafka: KafkaSettings, topic: str) -> list[int]:
    """Return the topic's partitions; an empty list if the topic does not exist. The topic is not created."""
    async with admin_client(kafka) as admin:
        if topic not in await admin.list_topics():
            return []
        (described,) = await admin.describe_topics([topic])
    return sorted(one["partition"] for one in described["partitions"])


@asynccontextmanager
async def _consumer(kafka: KafkaSettings, topic: str) -> AsyncGenerator[aiokafka.AIOKafkaConsumer, None]:
    """Yield a consumer that belongs to no consumer group. It is stopped at the end of the `async with` block."""
    consumer = aiokafka.AIOKafkaConsumer(
        **consumer_options(kafka),
        group_id=None,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=FETCH_BYTES,
    )
    try:
        await consumer.start()
        yield consumer
    except aiokafka.errors.KafkaError as exc:
        raise await translated(kafka, exc, Right("READ", "topic", topic)) from exc
    finally:
        await consumer.stop()
