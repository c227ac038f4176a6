"""Erasure receipts: a user's forget commands, and the number of the user's rows that are left in each table."""

from __future__ import annotations

from typing import Final, NamedTuple

from tables.database.shard_info import InfoTable
from tables.memories.catalog.catalog_file import CatalogFile
from tables.memories.catalog.erasing import NAMING
from tables.memories.catalog.part import Part

#: By the name of a table, its name in a receipt, if the two names differ.
_CALLED: Final = {"merged": "near_copies"}
_OF_USER: Final = "SELECT count(*) FROM {} WHERE user_id = $user"
#: By the table's name in a receipt, the query that counts its rows with words of the user.
_LEFT: Final = {
    "memories": _OF_USER.format("memories"),
    "archive": _OF_USER.format("archive"),
    "vectors": "SELECT count(*) FROM vectors SEMI JOIN (FROM memories WHERE user_id = $user) USING (seq)",
    **{_CALLED.get(table, table): _OF_USER.format(table) for table in NAMING},
}


class Forgotten(NamedTuple):
    """The forget commands for a user that have the same time `at` (epoch ms).

    `whole_user` is true if one of them was for the whole user. `ids` is the number of memory ids that they named.
    """

    at: int
    whole_user: bool
    ids: int


class Erasure(NamedTuple):
    """The receipt of a user's forget commands, which are listed oldest first.

    `memories` is the number of memories that were deleted, and `left` the number of the user's rows that are left, by
    table. `in_pages` is true if the catalog's file may still contain deleted rows. Its next rewrite removes them.
    """

    commands: list[Forgotten]
    memories: int
    left: dict[str, int]
    in_pages: bool


class Erasures(Part):
    """Computes receipts from the tombstones, the audit trail and the remaining rows of a catalog."""

    def __init__(self, file: CatalogFile, info: InfoTable) -> None:
        super().__init__(file)
        self._info = info

    def of(self, user_id: str) -> Erasure:
        """Return a user's erasure receipt: the forget commands, and the number of the user's rows that are left."""
        db, user = self._db, {"user": user_id}
        tables = {name for (name,) in db.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
        commands = db.execute(
            "SELECT epoch_ms(forgotten_at) AS at, bool_or(memory_id IS NULL) AS whole, count(memory_id) "
            "FROM tombstones WHERE user_id = $user GROUP BY forgotten_at ORDER BY forgotten_at",
            user,
        ).fetchall()
        ((memories,),) = db.execute(
            "SELECT count(DISTINCT memory_id) FROM transitions WHERE user_id = $user AND to_state = 'forgotten'", user
        ).fetchall()
        left = {
            name: int(db.execute(sql, user).fetchall()[0][0])
            for name, sql in _LEFT.items()
            if name != "vectors" or name in tables  # this table is created with the first model
        }
        in_pages = bool(self._info.read().to_erase)
        return Erasure([Forgotten(*row) for row in commands], int(memories), left, in_pages)
