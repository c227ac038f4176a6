"""The analysts' copy: one DuckDB file of all shards' rows, without vectors, and the same rows as Parquet.

    <data_dir>/analytics/siltstone.duckdb            tables, and views over them (docs/analytics.md)
    <data_dir>/analytics/parquet/<table>/<p>.parquet  the rows of shard p

Each shard writes its rows into `staged/` (`export`). `assemble` moves the files to their places, makes a new DuckDB
file beside the old one, and then replaces the old one. A process that has the old file open can still read it.
Workers that share a data directory share the copy: each exports its own shards, and assembles the exports of all.
"""

from __future__ import annotations

import contextlib
import fcntl
import glob
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

import duckdb
import pyarrow as pa

from schemas.errors import DataDirError
from schemas.settings import LifecycleSettings
from tables.database.database import BRIEFLY, Interruption, connect
from tables.database.migrations import statement
from tables.paths import quoted, synced

#: The tables of a shard that are copied, if the shard has them. All other tables are internal.
TABLES = ("memories", "links", "transitions", "archive", "times")
FILE = "siltstone.duckdb"
_LEFT_OUT = ("vector", "published")
#: Conditions on rows of a table. A worker of an older version, which knows no times, leaves those of memories that it
#: has forgotten.
_STAYING = {"times": "WHERE (partition, memory_id) IN (SELECT (partition, id) FROM memories)"}
#: Column types that are cast to other types in the DuckDB file. Parquet files of older workers may still have UUIDs.
_IN_COPY = {"UUID": "VARCHAR", "UUID[]": "VARCHAR[]"}
#: Column types that are cast to other types in Parquet files. pandas cannot read lists of UUIDs, and Polars reads
#: such lists and JSON as bytes.
_IN_PARQUET = {**_IN_COPY, "JSON": "VARCHAR"}
#: Seconds between two checks whether another process has finished its copy.
_LOOK_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """The sizes and modification times of a catalog's file and its WAL.

    If two fingerprints are equal, nothing was committed between them, and no text was read for times.
    """

    files: tuple[tuple[int, int] | None, ...]
    times: int = 0

    @classmethod
    def of(cls, catalog: Path, times: int = 0) -> Fingerprint:
        files = (catalog, catalog.with_name(f"{catalog.name}.wal"))
        return cls(tuple(_size_and_time(path) for path in files), times)


def _size_and_time(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_size, found.st_mtime_ns


@dataclass(frozen=True, slots=True)
class Copy:
    """A finished copy: its file, its contents, and its `size` in bytes. Its scores are as of `at` (epoch ms)."""

    path: Path
    at: int
    partitions: list[int]
    memories: int
    size: int


class SpokenTime(NamedTuple):
    """A window of time `[start, end)` (epoch ms) that the text of the memory with the number `seq` speaks of."""

    seq: int
    start: int
    end: int
    grain: str
    words: str


class StoredTimes(NamedTuple):
    """The times that a shard has of its memories' texts. If `version` has changed, these have changed, too."""

    version: int
    windows: Callable[[], Sequence[SpokenTime]]


NO_TIMES: Final = StoredTimes(0, tuple)


def export(
    db: duckdb.DuckDBPyConnection, partition: int, folder: Path, spoken: Sequence[SpokenTime]
) -> frozenset[str]:
    """Write a shard's rows, as of one transaction, into `folder`/staged. Return the tables that were written."""
    staged = folder / "staged"
    staged.mkdir(parents=True, exist_ok=True)
    db.execute("BEGIN TRANSACTION")
    try:
        rows = db.execute("SELECT table_name FROM duckdb_tables() WHERE NOT temporary").fetchall()
        there = frozenset(TABLES) & {name for (name,) in rows}
        for table in sorted(there):
            db.execute(
                f"COPY (SELECT {partition:d} AS partition, {_columns(db, table, _IN_PARQUET)} FROM {table}) "
                f"TO '{quoted(staged / _staged_name(table, partition))}' (FORMAT parquet, COMPRESSION zstd)"
            )
        _export_times(db, partition, staged, spoken)
    finally:
        db.execute("ROLLBACK")
    return there | {"times"}


def _export_times(db: duckdb.DuckDBPyConnection, partition: int, staged: Path, spoken: Sequence[SpokenTime]) -> None:
    """Write the times that memories speak of. They are not in the catalog, so they come from the search rows."""
    columns = list(zip(*spoken, strict=True)) or [()] * len(SpokenTime._fields)
    types = (pa.int64(), pa.timestamp("ms"), pa.timestamp("ms"), pa.string(), pa.string())
    arrays = [pa.array(values, kind) for values, kind in zip(columns, types, strict=True)]
    db.register("spoken", pa.table(dict(zip(SpokenTime._fields, arrays, strict=True))))
    try:
        db.execute(
            f"COPY (SELECT {partition:d} AS partition, memories.user_id, CAST(memories.id AS VARCHAR) AS memory_id, "
            'CAST(spoken."start" AS TIMESTAMP) AS starts_at, CAST(spoken."end" AS TIMESTAMP) AS ends_at, '
            "spoken.grain, spoken.words FROM spoken JOIN memories USING (seq) ORDER BY seq, starts_at) "
            f"TO '{quoted(staged / _staged_name('times', partition))}' (FORMAT parquet, COMPRESSION zstd)"
        )
    finally:
        db.unregister("spoken")


def _columns(db: duckdb.DuckDBPyConnection, rows: str, kinds: Mapping[str, str]) -> str:
    """Return the list of the copied columns for a SELECT. Columns of the types in `kinds` are cast."""
    found = db.execute(f"SELECT column_name, column_type FROM (DESCRIBE FROM {rows})").fetchall()
    return ", ".join(
        f'CAST("{name}" AS {kinds[kind]}) AS "{name}"' if kind in kinds else f'"{name}"'
        for name, kind in found
        if name not in _LEFT_OUT
    )


def assemble(
    folder: Path,
    exported: Mapping[int, frozenset[str]],
    at: int,
    lifecycle: LifecycleSettings,
    memory: int = BRIEFLY,
    interruption: Interruption | None = None,
) -> Copy:
    """Move the exported files to their places, and replace the copy by a new one, with scores as of `at` (epoch ms).

    DuckDB uses at most `memory` bytes, and the disk for the rest. Raises `DataDirError`, also after an interruption.
    After an error, the former copy stays in place.
    """
    interruption = interruption or Interruption()
    with _only_one(folder, interruption):
        for partition, tables in exported.items():
            for table in TABLES:
                place = parquet(folder, table, partition)
                if table in tables:
                    place.parent.mkdir(parents=True, exist_ok=True)
                    (folder / "staged" / _staged_name(table, partition)).replace(place)
                else:
                    place.unlink(missing_ok=True)
        made = folder / "staged" / FILE  # the file's final name, because DuckDB names the database after it
        for leftover in (made, made.with_name(f"{FILE}.wal")):
            leftover.unlink(missing_ok=True)
        shutil.rmtree(made.with_name(f"{FILE}.tmp"), ignore_errors=True)
        with connect(made, memory=memory, preserve_insertion_order=False) as db, interruption.reaches(db):
            memories = _fill(db, folder, at, lifecycle)
        synced(made)
        made.replace(folder / FILE)
        partitions = sorted(int(path.stem) for path in (folder / "parquet" / "memories").glob("*.parquet"))
        return Copy(folder / FILE, at, partitions, memories, (folder / FILE).stat().st_size)


def unstage(folder: Path, partitions: Iterable[int]) -> None:
    """Remove the staged files of these shards. If a file cannot be removed, the next export overwrites it."""
    for partition in partitions:
        for table in TABLES:
            with contextlib.suppress(OSError):
                (folder / "staged" / _staged_name(table, partition)).unlink(missing_ok=True)


def _fill(db: duckdb.DuckDBPyConnection, folder: Path, at: int, lifecycle: LifecycleSettings) -> int:
    for table in TABLES:
        parts = folder / "parquet" / table
        if any(parts.glob("*.parquet")):
            rows = (
                f"read_parquet('{quoted(glob.escape(str(parts)))}/*.parquet', "
                "union_by_name = true, hive_partitioning = false)"
            )
            db.execute(
                f"CREATE TABLE {table} AS SELECT {_columns(db, rows, _IN_COPY)} FROM {rows} {_STAYING.get(table, '')}"
            )
        elif table == "archive":  # only older workers, which have no archive, wrote these shards
            db.execute("CREATE TABLE archive AS FROM memories LIMIT 0")
        elif table == "times":  # only older workers, which read no times, wrote these shards
            db.execute(
                "CREATE TABLE times (partition INTEGER, user_id VARCHAR, memory_id VARCHAR, starts_at TIMESTAMP, "
                "ends_at TIMESTAMP, grain VARCHAR, words VARCHAR)"
            )
    db.execute(
        "CREATE TABLE copy_info AS SELECT make_timestamp_ms($at) AS as_of, cast($active AS DOUBLE) AS active, "
        "cast($cold AS DOUBLE) AS cold, cast($fresh_days AS DOUBLE) AS fresh_days, "
        "cast($half_life_days AS DOUBLE) AS half_life_days",
        {
            "at": at,
            "active": lifecycle.active,
            "cold": lifecycle.cold,
            "fresh_days": lifecycle.fresh_days,
            "half_life_days": lifecycle.half_life_days,
        },
    )
    for macros in ("lifecycle", "states_over_time"):  # permanent macros, because analysts need them, too
        db.execute(statement(macros).replace("TEMP MACRO", "MACRO"))
    db.execute(statement("analytics_views"))
    db.execute(statement("score_statistics"))
    ((memories,),) = db.execute("SELECT count(*) FROM memories").fetchall()
    return int(memories)


@contextmanager
def _only_one(folder: Path, interruption: Interruption) -> Iterator[None]:
    """Run the block in only one process at a time. If the process ends, its lock ends, too.

    DuckDB's and the system's errors inside the block are raised as `DataDirError`.
    """
    try:
        (folder / "staged").mkdir(parents=True, exist_ok=True)
        with (folder / "staged" / "lock").open("w") as lock:
            while not _locked(lock):
                interruption.check()
                time.sleep(_LOOK_SECONDS)
            yield
    except (duckdb.Error, OSError) as exc:
        raise DataDirError(folder, str(exc).splitlines()[0]) from exc


def _locked(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def parquet(folder: Path, table: str, partition: int) -> Path:
    """Return the path of the Parquet file with a shard's rows of a table."""
    return folder / "parquet" / table / f"{partition}.parquet"


def _staged_name(table: str, partition: int) -> str:
    return f"{table}-{partition}.parquet"


def described(copy: Copy, data: Path) -> dict[str, Any]:
    """Return a description of the copy for JSON. Its path is relative to the data directory."""
    return {
        "path": str(copy.path.resolve().relative_to(data.resolve())),
        "at": copy.at,
        "partitions": copy.partitions,
        "memories": copy.memories,
        "bytes": copy.size,
    }
