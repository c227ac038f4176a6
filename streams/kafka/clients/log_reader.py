"""Reads records of a partition between two offsets, outside the consumer group."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any

import aiokafka
import aiokafka.errors

from schemas.rights import Right
from schemas.settings import KafkaSettings
from streams.kafka.clients.broker import consumer_options, translated

log = logging.getLogger(__name__)

#: Maximum seconds for a broker to report a partition's end. Then a `TimeoutError` is raised.
PROBE_SECONDS = 30.0

#: If reading makes no progress for this time in seconds, or for the session time-out if that is longer, the broker is
#: asked for the partition's end.
SILENT_SECONDS = 10.0
#: Maximum milliseconds of a fetch, after which the position is checked. Without this limit, a fetch that finds
#: only the marker of a transaction, at the end of the log, would never return, because the marker is not a record.
LOOK_MS = 100
FETCH_BYTES = 4 * 1024 * 1024


async def records_between(
    kafka: KafkaSettings, topic: str, partition: int, start: int, end: int
) -> AsyncGenerator[Sequence[Any], None]:
    """Yield batches of the records with offsets from `start` up to, not including, `end`, in order.

    Stops when the consumer's position has reached `end`. The last offsets may have no record, such as the marker at
    the end of a transaction. Logs a warning if records are no longer in the log. Raises `BrokerUnavailable`, also if
    the log has further records but they do not arrive. A caller that may stop early must close the generator
    (`aclosing`).
    """
    tp = aiokafka.TopicPartition(topic, partition)
    consumer = aiokafka.AIOKafkaConsumer(
        **consumer_options(kafka),
        group_id=None,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=FETCH_BYTES,
    )
    silent = max(SILENT_SECONDS, kafka.session_timeout_seconds)
    now = asyncio.get_running_loop().time
    try:
        await consumer.start()
        consumer.assign([tp])
        consumer.seek(tp, start)
        position, heard = start, now()
        while position < end:
            records = (await consumer.getmany(tp, timeout_ms=LOOK_MS)).get(tp, ())
            reached = await asyncio.wait_for(consumer.position(tp), silent)
            if reached == position:
                if now() > heard + silent:
                    await _refuse_silence(consumer, tp, position)
                    _warn(tp, position, end)
                    return
                continue
            if reached < position:  # the log ends before `position`, so the client went to the start of the log
                _warn(tp, position, end)
                return
            first = records[0].offset if records else reached
            if first > position and (earliest := (await consumer.beginning_offsets([tp]))[tp]) > position:
                _warn(tp, position, min(first, earliest, end))
            position, heard = reached, now()
            if wanted := [record for record in records if record.offset < end]:
                yield wanted
                heard = now()
    except (aiokafka.errors.KafkaError, TimeoutError) as exc:
        raise await translated(kafka, exc, Right("READ", "topic", topic)) from exc
    finally:
        await consumer.stop()


async def records_before(
    consumer: aiokafka.AIOKafkaConsumer, ends: Mapping[aiokafka.TopicPartition, int], session_seconds: float
) -> AsyncGenerator[Mapping[aiokafka.TopicPartition, Sequence[Any]], None]:
    """Yield fetched records of several partitions, from the consumer's position in each up to the offset in `ends`.

    Records at and after these offsets may be included. `session_seconds` is the session time-out. Raises
    `TimeoutError` if the log has further records but they do not arrive.
    """
    now, silent = asyncio.get_running_loop().time, max(SILENT_SECONDS, session_seconds)
    positions = {tp: await asyncio.wait_for(consumer.position(tp), silent) for tp in ends}
    heard = now()
    while unread := [tp for tp, end in ends.items() if positions[tp] < end]:
        if fetched := await consumer.getmany(*unread, timeout_ms=LOOK_MS):
            yield fetched
        reached = {tp: await asyncio.wait_for(consumer.position(tp), silent) for tp in unread}
        if any(reached[tp] > positions[tp] for tp in unread):
            heard = now()
        elif now() > heard + silent:
            for tp in unread:
                await _refuse_silence(consumer, tp, positions[tp])
            return
        positions |= reached


async def time_of(kafka: KafkaSettings, topic: str, partition: int, start: int, end: int) -> int | None:
    """Return the Kafka timestamp (epoch ms) of the first record between these offsets; None if there is none.

    Raises `BrokerUnavailable`.
    """
    async with aclosing(records_between(kafka, topic, partition, start, end)) as batches:
        async for records in batches:
            at: int = records[0].timestamp
            return at
    return None


async def end_of(kafka: KafkaSettings, topic: str, partition: int) -> int:
    """Return the offset after the newest record of a partition. Raises `BrokerUnavailable` and `TimeoutError`."""
    tp = aiokafka.TopicPartition(topic, partition)
    consumer = aiokafka.AIOKafkaConsumer(**consumer_options(kafka), group_id=None, enable_auto_commit=False)
    try:
        await consumer.start()
        consumer.assign([tp])
        end: int = (await ends(consumer, [tp]))[tp]
        return end
    except aiokafka.errors.KafkaError as exc:
        raise await translated(kafka, exc, Right("READ", "topic", topic)) from exc
    finally:
        await consumer.stop()


async def bounds_of(kafka: KafkaSettings, topic: str, partition: int) -> tuple[int, int]:
    """Return the offset of a partition's oldest record, and the offset after its newest record.

    Raises `BrokerUnavailable` and `TimeoutError`.
    """
    tp = aiokafka.TopicPartition(topic, partition)
    consumer = aiokafka.AIOKafkaConsumer(**consumer_options(kafka), group_id=None, enable_auto_commit=False)
    try:
        await consumer.start()
        consumer.assign([tp])
        start: int = (await consumer.beginning_offsets([tp]))[tp]
        return start, (await ends(consumer, [tp]))[tp]
    except aiokafka.errors.KafkaError as exc:
        raise await translated(kafka, exc, Right("READ", "topic", topic)) from exc
    finally:
        await consumer.stop()


async def _refuse_silence(consumer: aiokafka.AIOKafkaConsumer, tp: aiokafka.TopicPartition, position: int) -> None:
    """Ask the broker for the end of the log. Raise `TimeoutError` if the log continues after `position`."""
    async with asyncio.timeout(PROBE_SECONDS):
        said = await consumer.end_offsets([tp])
    if said[tp] > position:
        raise TimeoutError


def _warn(tp: aiokafka.TopicPartition, start: int, end: int) -> None:
    log.warning(
        "%s[%d]: offsets %d to %d are no longer in the log: their records cannot be rebuilt",
        tp.topic,
        tp.partition,
        start,
        end - 1,
    )


async def ends(consumer: aiokafka.AIOKafkaConsumer, partitions: Sequence[aiokafka.TopicPartition]) -> dict[Any, int]:
    """Return the offset after the newest record of each of the consumer's partitions. Raises `TimeoutError`.

    For a read-committed consumer, the end is not after the start of the oldest open transaction. The ends are taken
    from a fetch, because Tansu's answer to a ListOffsets request may be wrong: it is the first offset of the last
    batch + 1, or an end from before Tansu lost records. On Apache Kafka, both requests give the same end.
    """
    said: dict[Any, int] = dict(await consumer.end_offsets(partitions))
    unsure = [tp for tp in partitions if said[tp]]
    for tp in unsure:
        consumer.seek(tp, said[tp] - 1)
    async with asyncio.timeout(PROBE_SECONDS):
        while unsure:
            await consumer.getmany(*unsure, timeout_ms=100)
            known = {tp: end for tp in unsure if (end := _fetched_end(consumer, tp)) is not None}
            said |= known
            unsure = [tp for tp in unsure if tp not in known]
    return said


def _fetched_end(consumer: aiokafka.AIOKafkaConsumer, tp: aiokafka.TopicPartition) -> int | None:
    end: int | None = consumer.highwater(tp)
    stable: int | None = consumer.last_stable_offset(tp)
    return end if end is None or stable is None or stable < 0 else min(end, stable)
