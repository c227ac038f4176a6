"""A snapshot is the source of a checkpoint: a partition's files at one moment, and facts about them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

#: The version of the checkpoint format. A worker does not use checkpoints of a newer version.
FORMAT: Final = 1
#: The size of a block in bytes. It is the same as the size of DuckDB's blocks.
BLOCK_BYTES: Final = 256 * 1024
#: A DuckDB file has three headers of 4 KiB each before its first block.
DUCKDB_HEADER_BYTES: Final = 3 * 4096


class Position(msgspec.Struct, frozen=True):
    """A position in a log: the files of the checkpoint include all records of the log before `offset`."""

    topic_id: str
    offset: int


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts about a checkpoint that a worker must know before it uses the checkpoint.

    `at` is the time of the wall clock (epoch ms). `epoch` is the generation of the consumer group in which the worker
    owned the partition. A worker whose epoch is lower than that of the newest checkpoint must not take one.
    `positions` has the position in each log: in `long-term`, and in each changelog. `in_pages` is True if the files
    may still have forgotten bytes, because they were not rewritten yet. `windows` is a number of changes: the window
    rows include at least that many. It is 0 if there are no window rows.
    """

    format: int = FORMAT
    partition: int
    partitions: int
    model: str
    dimension: int
    at: int
    epoch: int
    positions: Mapping[str, Position]
    in_pages: bool = False
    windows: int = 0


class SnapshotFile(NamedTuple):
    """A file of a partition. The first `length` bytes of `path` do not change while a checkpoint is taken.

    `name` is its path below the restored folder, such as `shard/catalog.duckdb` or `windows/000012.sst`. A `sealed`
    file changes only when forgotten bytes in it are overwritten; then its modification time changes, too.
    """

    name: str
    path: Path
    length: int
    sealed: bool


class Snapshot(NamedTuple):
    """A snapshot: one partition's files at one moment, and the facts about them."""

    facts: Facts
    files: Sequence[SnapshotFile]


def spans(name: str, length: int) -> Iterator[tuple[int, int]]:
    """Return the offset and length of each block of a file. A DuckDB file is cut into DuckDB's own blocks."""
    offset = 0
    if name.endswith(".duckdb"):
        offset = min(length, DUCKDB_HEADER_BYTES)
        if offset:
            yield 0, offset
    while offset < length:
        size = min(BLOCK_BYTES, length - offset)
        yield offset, size
        offset += size
