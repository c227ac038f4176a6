"""Records of a partition between two offsets, read beside the consumer group."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import aiokafka
import aiokafka.errors

from schemas.errors import BrokerUnavailable
from schemas.settings import KafkaSettings
from streams.clients.broker import client_options
from streams.clients.header_names import take_any_header_name

log = logging.getLogger(__name__)

#: A broker that says nothing about a partition's end for so long does not work.
PROBE_SECONDS = 30.0

#: A partition that gives nothing for so long has nothing more below its end.
SILENT_SECONDS = 10.0
FETCH_BYTES = 4 * 1024 * 1024


async def records_between(
    kafka: KafkaSettings, topic: str, partition: int, start: int, end: int
) -> AsyncGenerator[Sequence[Any], None]:
    """Batches of the records with offsets from `start` up to, not including, `end`, in order.

    What retention has deleted is warned of. Raises `BrokerUnavailable`. Who may leave early closes it (`aclosing`).
    """
    take_any_header_name()
    tp = aiokafka.TopicPartition(topic, partition)
    consumer = aiokafka.AIOKafkaConsumer(
        **client_options(kafka),
        group_id=None,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=FETCH_BYTES,
    )
    try:
        await consumer.start()
        consumer.assign([tp])
        consumer.seek(tp, start)
        position = start
        while position < end:
            records = (await consumer.getmany(tp, timeout_ms=round(SILENT_SECONDS * 1000))).get(tp)
            if not records:
                log.warning("%s[%d]: there are no records from offset %d up to %d", topic, partition, position, end)
                return
            if position == start < records[0].offset:
                log.warning(
                    "%s[%d]: offsets %d to %d are no longer in the log: what was in them cannot be rebuilt",
                    topic,
                    partition,
                    start,
                    records[0].offset - 1,
                )
            position = records[-1].offset + 1
            if wanted := [record for record in records if record.offset < end]:
                yield wanted
    except aiokafka.errors.KafkaError as exc:
        raise BrokerUnavailable(kafka.bootstrap_servers, type(exc).__name__) from exc
    finally:
        await consumer.stop()


async def end_of(kafka: KafkaSettings, topic: str, partition: int) -> int:
    """The offset after the newest record of a partition. Raises `BrokerUnavailable` and `TimeoutError`."""
    take_any_header_name()
    tp = aiokafka.TopicPartition(topic, partition)
    consumer = aiokafka.AIOKafkaConsumer(**client_options(kafka), group_id=None, enable_auto_commit=False)
    try:
        await consumer.start()
        consumer.assign([tp])
        end: int = (await ends(consumer, [tp]))[tp]
        return end
    except aiokafka.errors.KafkaError as exc:
        raise BrokerUnavailable(kafka.bootstrap_servers, type(exc).__name__) from exc
    finally:
        await consumer.stop()


async def ends(consumer: aiokafka.AIOKafkaConsumer, partitions: Sequence[aiokafka.TopicPartition]) -> dict[Any, int]:
    """The offset after the newest record of each of the consumer's partitions. Raises `TimeoutError`.

    What a fetch says is right. Asked for it (ListOffsets), Tansu answers with the first offset of the last batch + 1,
    or with an end that it had before it lost the records. Apache Kafka says the same in both ways.
    """
    take_any_header_name()
    said: dict[Any, int] = dict(await consumer.end_offsets(partitions))
    unsure = [tp for tp in partitions if said[tp]]
    for tp in unsure:
        consumer.seek(tp, said[tp] - 1)
    async with asyncio.timeout(PROBE_SECONDS):
        while unsure:
            await consumer.getmany(*unsure, timeout_ms=100)
            known = {tp: end for tp in unsure if (end := consumer.highwater(tp)) is not None}
            said |= known
            unsure = [tp for tp in unsure if tp not in known]
    return said
