"""What is made of a fetched record is what aiokafka makes of it."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import aiokafka
from aiokafka.consumer import fetcher
from aiokafka.producer.message_accumulator import BatchBuilder
from aiokafka.record.memory_records import MemoryRecords
from aiokafka.structs import TopicPartition

from streams.kafka.patches.header_names import FetchedRecord, _FetchedRecords, _PartitionRecords

AIOKAFKAS = next(base for base in _PartitionRecords.__mro__ if base.__module__ == fetcher.__name__)


def read(partition_records: Any, records: Any) -> list[Any]:
    where = TopicPartition("t", 3)
    return list(partition_records(where, records, [], 0, None, None, True, 0)._unpack_records())


def test_a_fetched_record_has_the_fields_of_aiokafkas() -> None:
    """With and without key, value and headers."""
    batch = BatchBuilder(10_000, 0)
    for key, value, headers in (
        (b"k", b"v", []),
        (None, b"", [("name", b"1"), ("名", None)]),
        (b"", None, []),
    ):
        assert batch.append(timestamp=1_767_225_600_000, key=key, value=value, headers=headers) is not None
    raw = bytes(batch._build())
    ours, theirs = read(_PartitionRecords, _FetchedRecords(raw)), read(AIOKAFKAS, MemoryRecords(raw))
    names = [field.name for field in fields(aiokafka.ConsumerRecord)]
    assert all(type(record) is FetchedRecord for record in ours)
    assert [[getattr(record, name) for name in names] for record in ours] == [
        [getattr(record, name) for name in names] for record in theirs
    ]
