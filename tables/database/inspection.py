"""Inspection of a shard's catalog. The file is only opened for a moment and read; it is not migrated or repaired."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

import duckdb

from schemas.errors import DataDirError, ShardError, ShardLocked
from tables.database.database import connect
from tables.database.migrations import available
from tables.database.shard_info import read_info
from tables.paths import shard_folders

_HOLDER = re.compile(r"\(PID (\d+)\)")


@dataclass(frozen=True, slots=True)
class Inspection:
    """The model and dimension of a shard's vectors; None and 0 if it has none yet."""

    model: str | None
    dimension: int


def catalogs(data_dir: Path) -> dict[int, Path]:
    """Return the catalogs in a data directory, by partition. Raises `DataDirError` if they cannot be listed."""
    found = {partition: folder / "catalog.duckdb" for partition, folder in shard_folders(data_dir).items()}
    try:
        return {partition: path for partition, path in found.items() if path.exists()}
    except OSError as exc:
        raise DataDirError(data_dir, exc.strerror or str(exc)) from exc


def inspect_catalog(partition: int, path: Path) -> Inspection:
    """Open a catalog for reading, and close it again.

    Raises `ShardLocked` if it is open in this or another process, `DataDirError` if this process may not read and
    write it, and `ShardError` if it cannot be used.
    """
    if not os.access(path, os.R_OK | os.W_OK, effective_ids=os.access in os.supports_effective_ids):
        raise DataDirError(path, "permission denied")
    try:
        with connect(path, read_only=True) as db:
            return _read(partition, db)
    except duckdb.ConnectionException as exc:  # this process has the catalog open
        raise ShardLocked(partition, f"{path} is open in this process ({os.getpid()})") from exc
    except duckdb.IOException as exc:
        if "could not set lock" in str(exc).lower():
            holder = _HOLDER.search(str(exc))
            raise ShardLocked(partition, f"process {holder[1] if holder else 'unknown'} has it open") from exc
        raise ShardError(partition, f"{path} cannot be read: {str(exc).splitlines()[0]}") from exc
    except duckdb.Error as exc:
        raise ShardError(partition, f"{path} cannot be read: {type(exc).__name__}") from exc


def position(partition: int, path: Path) -> int:
    """Return the offset of `long-term` up to which a catalog has the events; 0 if it has none.

    Raises the errors of `inspect_catalog`.
    """
    if inspect_catalog(partition, path).model is None:
        return 0
    with connect(path, read_only=True) as db:
        return read_info(db).position or 0


def users(data_dir: Path, of_each: int = 20) -> list[tuple[str, int]]:
    """Return at most `of_each` users of each shard that can be read now, each with the shard's partition."""
    found: list[tuple[str, int]] = []
    for partition, path in catalogs(data_dir).items():
        try:
            if inspect_catalog(partition, path).model is None:
                continue
            with connect(path, read_only=True) as db:
                rows = db.execute("SELECT DISTINCT user_id FROM memories LIMIT ?", [of_each]).fetchall()
        except (ShardError, DataDirError):
            continue  # another process has the shard open, or `doctor` reports the fault
        found += [(user_id, partition) for (user_id,) in rows]
    return found


def _read(partition: int, db: duckdb.DuckDBPyConnection) -> Inspection:
    tables = {name for (name,) in db.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
    if "migrations" not in tables:
        return Inspection(None, 0)
    ((schema,),) = db.execute("SELECT coalesce(max(number), 0) FROM migrations").fetchall()
    if schema > available()[-1][0]:
        raise ShardError(partition, f"it was written by a newer Siltstone (schema {schema}): upgrade this one")
    if "shard_info" not in tables:
        return Inspection(None, 0)
    info = read_info(db)
    return Inspection(info.model, info.dimension or 0)
