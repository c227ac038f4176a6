"""Ratings of exchanges by a model, stored so that a replay does not ask the model again."""

from __future__ import annotations

import uuid

from tables.memories.catalog.part import Part


class Ratings(Part):
    """The table `ratings` of a catalog."""

    def of(self, memory_id: uuid.UUID, model: str) -> int | None:
        """Return the stored rating of this exchange by the model; None if no rating is stored."""
        rows = self._db.execute(
            "SELECT value FROM ratings WHERE memory_id = ? AND model = ?", [memory_id, model]
        ).fetchall()
        return int(rows[0][0]) if rows else None

    def put(self, memory_id: uuid.UUID, model: str, rating: int, now: int) -> None:
        """Store a model's rating, given at `now` (epoch ms)."""
        self._db.execute(
            "INSERT INTO ratings VALUES (?, ?, ?, make_timestamp_ms(?))", [memory_id, model, rating, now]
        )
