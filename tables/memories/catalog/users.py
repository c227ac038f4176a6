"""The users who have memories in a shard."""

from __future__ import annotations

import uuid

from tables.database.migrations import statement
from tables.memories.catalog.catalog_file import CatalogFile
from tables.memories.catalog.changes import Holdings, UserCount
from tables.memories.catalog.ids import Ids
from tables.memories.catalog.part import Part, resting


class Users(Part):
    """The users of a catalog. `ids` are the ids that the catalog knows."""

    def __init__(self, file: CatalogFile, ids: Ids) -> None:
        super().__init__(file)
        self._ids = ids

    def all(self) -> list[Holdings]:
        """Return the users with memories, in alphabetical order; archived memories do not count."""
        rows = self._db.execute(
            "SELECT user_id, count(*), epoch_ms(min(created_at)), epoch_ms(max(created_at)) FROM memories "
            "GROUP BY user_id ORDER BY user_id"
        ).fetchall()
        return [Holdings(*row) for row in rows]

    def with_more_than(self, memories: int) -> dict[str, int]:
        """Return the number of memories of each user who has more than this number."""
        rows = self._db.execute(
            "SELECT user_id, count(*) FROM memories GROUP BY user_id HAVING count(*) > ?", [memories]
        ).fetchall()
        return dict(rows)

    def having(self, memory_id: uuid.UUID) -> list[str]:
        """Return the users who have a memory, an archived memory or a merged near-copy with this id.

        An unknown id needs no query.
        """
        if not self._ids.known([memory_id])[0]:
            return []
        rows = self._db.execute(
            "SELECT user_id FROM memories WHERE id = $id UNION SELECT user_id FROM archive WHERE id = $id "
            "UNION SELECT user_id FROM merged WHERE memory_id = $id ORDER BY 1",
            {"id": memory_id},
        ).fetchall()
        return [user_id for (user_id,) in rows]

    @resting
    def newest(self, most: int) -> list[UserCount]:
        """Return the `most` users whose memories were created or accessed last, newest first."""
        rows = self._db.execute(statement("newest_users"), {"most": most}).fetchall()
        return [UserCount(*row) for row in rows]
