"""Kafka's record batches (magic 2) as Tansu stores them.

The base offset of a batch is in the name of its object, not in its bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from aiokafka.record.default_records import DefaultRecordBatch, DefaultRecordBatchBuilder

#: Two fields in the head of a batch: its attributes, and the offset of its last record relative to its base offset.
#: They follow the fields base offset, length, leader epoch, magic and checksum.
_ATTRIBUTES: Final = struct.Struct(">h")
_LAST_DELTA: Final = struct.Struct(">i")
_ATTRIBUTES_AT, _LAST_DELTA_AT = 21, 23
_COMPRESSION, _OTHER = 0b111, ~0b111
#: Maximum bytes of a packed batch. A fetch returns whole batches, from the batch that has its offset on. So a batch
#: must be much smaller than a fetch.
PACKED_BYTES: Final = 64 * 1024


class Record(NamedTuple):
    """One record at its offset in the partition."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: list[tuple[str, bytes]]


def end_of(base: int, batch: bytes) -> int:
    """Return the offset after the last record of a batch that begins at offset `base`."""
    (delta,) = _LAST_DELTA.unpack_from(batch, _LAST_DELTA_AT)
    return base + int(delta) + 1


def is_plain(batch: bytes) -> bool:
    """True if the batch does not belong to a transaction, and has the timestamps of the producers."""
    return not _attributes(batch) & _OTHER


def is_compressed(batch: bytes) -> bool:
    return bool(_attributes(batch) & _COMPRESSION)


def records_of(base: int, batch: bytes) -> Iterator[Record]:
    for one in DefaultRecordBatch(batch):
        yield Record(base + one.offset, one.timestamp, one.key, one.value, one.headers)


def packed(records: Iterable[Record], most: int = PACKED_BYTES) -> Iterator[tuple[int, bytes]]:
    """Pack these records into batches of at most `most` bytes. Yield the base offset and the bytes of each batch.

    Records keep their offsets, and offsets without a record stay without one.
    """
    base, builder = 0, None
    for one in records:
        if builder is not None and not _add(builder, base, one):
            yield base, bytes(builder.build())
            builder = None
        if builder is None:
            base, builder = one.offset, _builder(most)
            _add(builder, base, one)
    if builder is not None:
        yield base, bytes(builder.build())


def _builder(most: int) -> DefaultRecordBatchBuilder:
    return DefaultRecordBatchBuilder(2, 0, 0, -1, -1, -1, most)


def _add(builder: DefaultRecordBatchBuilder, base: int, one: Record) -> bool:
    """Add the record to the batch. Return False if the batch is full. The first record of a batch always fits."""
    added = builder.append(one.offset - base, one.timestamp, one.key, one.value, one.headers)
    return added is not None


def _attributes(batch: bytes) -> int:
    (attributes,) = _ATTRIBUTES.unpack_from(batch, _ATTRIBUTES_AT)
    return int(attributes)
