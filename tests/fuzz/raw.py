"""Records as no client of ours would send them: without key and value, compressed, with header names of any bytes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import aiokafka
from aiokafka.producer.message_accumulator import BatchBuilder
from aiokafka.record.util import calc_crc32c

from schemas.settings import KafkaSettings
from schemas.topic_specs import MAX_RECORD_BYTES
from schemas.topics import Headers
from streams.kafka.clients.broker import client_options

#: A header's name whose bytes are sent as `NO_UTF8`; in batches that are not compressed.
UNREADABLE = "\x01unreadable\x01"
NO_UTF8 = b"\xff\xfe\xc3a name \x80\x80"
NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
_CRC, _AFTER_CRC = 17, 21


class Raw(NamedTuple):
    """A record of a partition of a topic. `timestamp` is Kafka's own, epoch ms."""

    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    timestamp: int | None = None


async def send(kafka: KafkaSettings, records: Sequence[Raw], codec: int = NONE) -> None:
    """One batch a partition; all of it is acknowledged when this returns."""
    by_partition: defaultdict[tuple[str, int], list[Raw]] = defaultdict(list)
    for record in records:
        by_partition[record.topic, record.partition].append(record)
    producer = aiokafka.AIOKafkaProducer(**client_options(kafka), max_request_size=MAX_RECORD_BYTES)
    await producer.start()
    try:
        for (topic, partition), batch in by_partition.items():
            await (await producer.send_batch(_batch(batch, codec), topic, partition=partition))
    finally:
        await producer.stop()


def _batch(records: Sequence[Raw], codec: int) -> Any:
    batch = BatchBuilder(MAX_RECORD_BYTES, codec)
    for one in records:
        assert (
            batch.append(timestamp=one.timestamp, key=one.key, value=one.value, headers=list(one.headers)) is not None
        )
    built = bytearray(batch._build())
    if codec == NONE:
        built = built.replace(UNREADABLE.encode(), NO_UTF8)
        built[_CRC:_AFTER_CRC] = calc_crc32c(bytes(built[_AFTER_CRC:])).to_bytes(4, "big")
        batch._buffer = bytes(built)
    return batch
