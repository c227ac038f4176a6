"""The source of a checkpoint: a partition's files at one moment, and facts about them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

#: The version of the checkpoint format. A worker uses no checkpoint of a newer version.
FORMAT: Final = 1
#: The size of a block in bytes, the same as DuckDB's.
BLOCK_BYTES: Final = 256 * 1024
#: A DuckDB file has three headers of 4 KiB each before its first block.
DUCKDB_HEADER_BYTES: Final = 3 * 4096


class Position(msgspec.Struct, frozen=True):
    """How much of a log is in the files: `offset` is that of the first record not in them."""

    topic_id: str
    offset: int


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """Facts that are needed before a checkpoint is used.

    `at` is the wall clock in milliseconds, `epoch` the consumer group's generation in which its worker owns the
    partition: a worker with a lower epoch than the newest checkpoint's is fenced. `positions` has one for each log:
    `long-term` and each changelog. `in_pages`: its files may still hold forgotten bytes, because they are not
    rewritten yet. `windows` is the least number of changes that its windows' rows include, 0 if it has no windows.
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
    file changes only by overwriting forgotten bytes, which changes its modification time.
    """

    name: str
    path: Path
    length: int
    sealed: bool


class Snapshot(NamedTuple):
    """One partition's files at one moment."""

    facts: Facts
    files: Sequence[SnapshotFile]


def spans(name: str, length: int) -> Iterator[tuple[int, int]]:
    """The offset and length of each block of a file. A DuckDB file is cut into DuckDB's own blocks."""
    offset = 0
    if name.endswith(".duckdb"):
        offset = min(length, DUCKDB_HEADER_BYTES)
        if offset:
            yield 0, offset
    while offset < length:
        size = min(BLOCK_BYTES, length - offset)
        yield offset, size
        offset += size
