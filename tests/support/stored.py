"""A closed shard's vectors: read as the format says, or put back where an earlier version had them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np

Vector = np.ndarray[Any, np.dtype[np.float32]]

#: Of the file before the first vector.
HEAD = 4096


def stored_in(folder: Path) -> dict[int, Vector]:
    """By number, in the order of their slots."""
    with duckdb.connect(str(folder / "catalog.duckdb"), read_only=True) as db:
        return _of(db, folder, "vectors", "vectors_file", "dimension")


def _of(db: duckdb.DuckDBPyConnection, folder: Path, table: str, file: str, dimension: str) -> dict[int, Vector]:
    info = dict(db.execute("SELECT key, value FROM shard_info").fetchall())
    rows = db.execute(f"SELECT seq, slot FROM {table} ORDER BY slot").fetchall()
    wide = int(info[dimension])
    held = np.fromfile(folder / f"vectors-{info[file]}.f32", "<f4", offset=HEAD).reshape(-1, wide)
    return {seq: held[slot] for seq, slot in rows}


def as_version_7(folder: Path) -> None:
    """Have the vectors in the catalog, in columns, and no file."""
    with duckdb.connect(str(folder / "catalog.duckdb")) as db:
        tables = {name for (name,) in db.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
        for prefix, table in (("", "vectors"), ("next_", "vectors_next")):
            if table not in tables:
                continue
            held = _of(db, folder, table, f"{prefix}vectors_file", f"{prefix}dimension")
            db.execute(f"DROP TABLE {table}")
            ((wide,),) = db.execute("SELECT value FROM shard_info WHERE key = ?", [f"{prefix}dimension"]).fetchall()
            db.execute(f"CREATE TABLE {table} (seq BIGINT NOT NULL, vector FLOAT[{int(wide)}] NOT NULL)")
            for seq, vector in held.items():
                db.execute(f"INSERT INTO {table} VALUES (?, ?)", [seq, vector.tolist()])
        db.execute("DELETE FROM shard_info WHERE key IN ('vectors_file', 'next_vectors_file')")
        db.execute("ALTER TABLE tombstones DROP COLUMN seen_at")
        for table in ("memories", "archive"):
            for column in ("topic", "valid_from", "valid_to"):
                db.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
        db.execute("DELETE FROM migrations WHERE number > 7")
    for path in folder.glob("vectors-*.f32"):
        path.unlink()
