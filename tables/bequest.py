"""What a shard knows that no log says, or says no more: what was forgotten, and what a model answered."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import NamedTuple

from tables.catalog import Tombstone
from tables.database import connect
from tables.peek import peek


class Rated(NamedTuple):
    """A model's answer about an exchange; `rated_at` is epoch milliseconds."""

    memory_id: uuid.UUID
    model: str
    value: int
    rated_at: int


class Bequest(NamedTuple):
    tombstones: list[Tombstone]
    ratings: list[Rated]


def bequest(partition: int, path: Path) -> Bequest:
    """Read from the catalog at `path`. Raises `ShardLocked` where a worker has it, and what else `peek` raises."""
    peek(partition, path)
    with connect(path, read_only=True) as db:
        tables = {name for (name,) in db.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
        graves = ratings = []
        if "tombstones" in tables:
            graves = db.execute("SELECT user_id, memory_id, epoch_ms(forgotten_at) FROM tombstones").fetchall()
        if "ratings" in tables:
            ratings = db.execute("SELECT memory_id, model, value, epoch_ms(rated_at) FROM ratings").fetchall()
    return Bequest([Tombstone(*row) for row in graves], [Rated(*row) for row in ratings])
