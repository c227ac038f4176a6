"""Reads the data that a replay copies from a live shard because the log may lack them: tombstones and ratings."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Final, NamedTuple

from tables.database.database import connect
from tables.database.inspection import inspect_catalog
from tables.memories.catalog.changes import Tombstone

#: Returns 1 if the table has the column `seen_at`. Catalogs of earlier versions do not have it.
_HAS_SEEN: Final = "SELECT count(*) FROM duckdb_columns() WHERE (table_name, column_name) = ('tombstones', 'seen_at')"


class Rated(NamedTuple):
    """A model's rating of an exchange; `rated_at` is epoch ms."""

    memory_id: uuid.UUID
    model: str
    rating: int
    rated_at: int


class CarryOver(NamedTuple):
    tombstones: list[Tombstone]
    ratings: list[Rated]


def carry_over(partition: int, path: Path) -> CarryOver:
    """Read tombstones and ratings from the catalog at `path`. Raises the errors of `inspect_catalog`.

    One of these errors is `ShardLocked`, if a worker has the catalog open.
    """
    inspect_catalog(partition, path)
    with connect(path, read_only=True) as db:
        tables = {name for (name,) in db.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
        tombstones = ratings = []
        if "tombstones" in tables:
            ((has_seen,),) = db.execute(_HAS_SEEN).fetchall()
            seen = "epoch_ms(seen_at)" if has_seen else "NULL"
            tombstones = db.execute(
                f"SELECT user_id, memory_id, epoch_ms(forgotten_at), {seen} FROM tombstones"
            ).fetchall()
        if "ratings" in tables:
            ratings = db.execute("SELECT memory_id, model, value, epoch_ms(rated_at) FROM ratings").fetchall()
    return CarryOver([Tombstone(*row) for row in tombstones], [Rated(*row) for row in ratings])
