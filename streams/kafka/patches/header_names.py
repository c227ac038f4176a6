"""Replaces the code by which aiokafka reads fetched records. Any header name is accepted, and reading is faster.

aiokafka requires that header names are UTF-8. Kafka does not, and some producers write arbitrary bytes. Without this
patch, such a record would stop every consumer of its partition, again and again. If a name is not UTF-8, each of its
bytes that is not ASCII is replaced by `?`. (A Java consumer would show U+FFFD.) Our own header names stay unchanged.

aiokafka creates a dataclass object for every record. A msgspec struct takes less time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from aiokafka.consumer import fetcher
from aiokafka.record.default_records import _DefaultRecordBatchPy
from aiokafka.record.memory_records import MemoryRecords, _MemoryRecordsPy
from aiokafka.record.util import decode_varint


class FetchedRecord(msgspec.Struct, gc=False):
    """A fetched record: the fields of `aiokafka.ConsumerRecord`, without a checksum."""

    topic: str
    partition: int
    offset: int
    timestamp: int
    timestamp_type: int
    key: Any
    value: Any
    headers: tuple[tuple[str, bytes], ...] = ()
    checksum: None = None

    @property
    def serialized_key_size(self) -> int:
        return -1 if self.key is None else len(self.key)

    @property
    def serialized_value_size(self) -> int:
        return -1 if self.value is None else len(self.value)


def take_any_header_name() -> None:
    """From now on, every consumer of this process accepts any header name. A second call changes nothing."""
    fetcher.MemoryRecords, fetcher.PartitionRecords = _FetchedRecords, _PartitionRecords


class _FetchedRecords(MemoryRecords):  # type: ignore[misc]
    """The fetched records of a partition, read by aiokafka's fast reader. `raw` is kept for `_MendedRecords`."""

    def __init__(self, raw: bytes) -> None:
        super().__init__(raw)
        self.raw = raw


class _PartitionRecords(fetcher.PartitionRecords):  # type: ignore[misc]
    _records: Any
    _records_iterator: Iterator[Any]

    def _consumer_record(self, tp: Any, record: Any) -> Any:
        if self._key_deserializer or self._value_deserializer:
            return super()._consumer_record(tp, record)
        topic, partition = tp
        return FetchedRecord(
            topic,
            partition,
            record.offset,
            record.timestamp,
            record.timestamp_type,
            record.key,
            record.value,
            tuple(record.headers),
        )

    def __iter__(self) -> Iterator[Any]:
        return self._records_iterator  # aiokafka's iterator would call a function for each record

    def _unpack_records(self) -> Iterator[Any]:
        try:
            yield from super()._unpack_records()
        except UnicodeDecodeError:
            self._records = _MendedRecords(self._records.raw, self.next_fetch_offset)
            yield from super()._unpack_records()


class _MendedRecords(_MemoryRecordsPy):  # type: ignore[misc]
    """The fetched records of a partition from `offset` on, with all header names made readable.

    They are read by aiokafka's slow reader, because its code in Python can be overridden.
    """

    _next_slice: Any
    _pos: int

    def __init__(self, raw: bytes, offset: int) -> None:
        super().__init__(raw)
        while (first := self._next_slice) is not None:
            end = self._pos
            if super().next_batch().next_offset > offset:  # a batch before `offset` would set the position back
                self._next_slice, self._pos = first, end
                break

    def next_batch(self) -> Any:
        batch = self._next_slice
        if batch is None or batch[self.MAGIC_OFFSET] < 2:  # older formats have no headers
            return super().next_batch()
        self._cache_next()
        return _MendedBatch(batch)


class _MendedBatch(_DefaultRecordBatchPy):  # type: ignore[misc]
    def _read_msg(self) -> Any:
        try:
            return super()._read_msg()
        except UnicodeDecodeError:
            self._mend()
            return super()._read_msg()

    def _mend(self) -> None:
        """Replace the header names of the next record that are not UTF-8, in the buffer of the batch."""
        buffer, place = self._buffer, self._pos
        for _ in range(4):  # skips length, attributes, timestamp and offset
            _, place = decode_varint(buffer, place)
        for _ in range(2):  # key, value
            size, place = decode_varint(buffer, place)
            place += max(0, size)
        count, place = decode_varint(buffer, place)
        for _ in range(count):
            size, place = decode_varint(buffer, place)
            name = bytes(buffer[place : place + size])
            buffer[place : place + size] = _readable(name)
            size, place = decode_varint(buffer, place + size)
            place += max(0, size)


def _readable(name: bytes) -> bytes:
    """Return the header name. If it is not UTF-8, replace each byte that is not ASCII by a `?`."""
    try:
        name.decode()
    except UnicodeDecodeError:
        return bytes(byte if byte < 0x80 else ord("?") for byte in name)
    return name
