"""The links between memories."""

from __future__ import annotations

import uuid

from tables.memories.catalog.changes import NewLink
from tables.memories.catalog.part import Part


class Links(Part):
    """The table `links` of a catalog."""

    def of(self, user_id: str, memory_id: uuid.UUID) -> list[NewLink]:
        """Return the links from and to a memory, oldest first, without links to archived or removed memories."""
        rows = self._db.execute(
            "SELECT user_id, source_id, target_id, kind, weight, epoch_ms(created_at) FROM links "
            "WHERE user_id = $user AND (source_id = $id OR target_id = $id) "
            "AND CASE WHEN source_id = $id THEN target_id ELSE source_id END "
            "IN (SELECT id FROM memories WHERE user_id = $user) "
            "ORDER BY created_at, source_id, target_id, kind",
            {"id": memory_id, "user": user_id},
        ).fetchall()
        return [NewLink(*row) for row in rows]

    def of_user(self, user_id: str) -> list[NewLink]:
        """Return the links between a user's memories, oldest first, each once."""
        rows = self._db.execute(
            "SELECT user_id, source_id, target_id, kind, weight, epoch_ms(created_at) FROM links WHERE user_id = ? "
            "ORDER BY created_at, source_id, target_id, kind",
            [user_id],
        ).fetchall()
        return [NewLink(*row) for row in rows]
