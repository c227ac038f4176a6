"""What a checkpoint is made of: a partition's files as they are at one moment, and the facts about them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

#: The version of what is written. A worker takes none that is newer than its own.
FORMAT: Final = 1
#: Files are cut into blocks of so many bytes; DuckDB's are as large.
BLOCK_BYTES: Final = 256 * 1024
#: A DuckDB file has three headers of 4 KiB each before its first block.
DUCKDB_HEADER_BYTES: Final = 3 * 4096


class Position(msgspec.Struct, frozen=True):
    """Up to where a log is in the files: `offset` is the next record that is not in them."""

    topic_id: str
    offset: int


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What has to be known of a checkpoint before it is used.

    `at` is the wall clock in milliseconds, `epoch` the consumer group's generation in which its worker owns the
    partition: who comes with a lower one than the newest checkpoint's is fenced. `positions` has one for each log:
    `long-term` and each changelog. `in_pages`: bytes of what was forgotten may lie in its files, which are
    not rewritten yet. `windows` is the number of changes that its windows' rows have at least, 0 where there are
    none in it.
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

    `name` is the file's own below the restored folder, as `shard/catalog.duckdb` or `windows/000012.sst`. A `sealed`
    one never changes under its name; its time of modification does where bytes of it were overwritten (forgetting).
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
    """The blocks of a file: (offset, bytes) of each. Those of a DuckDB file are DuckDB's own."""
    offset = 0
    if name.endswith(".duckdb"):
        offset = min(length, DUCKDB_HEADER_BYTES)
        if offset:
            yield 0, offset
    while offset < length:
        size = min(BLOCK_BYTES, length - offset)
        yield offset, size
        offset += size
