"""Erasure receipts: what was forgotten of a user, and which rows are left, both read from the tables."""

from __future__ import annotations

from typing import Final, NamedTuple

import duckdb

from tables.memories.catalog.erasing import NAMING

#: Tables that have another name in a receipt.
_CALLED: Final = {"merged": "near_copies"}
_OF_USER: Final = "SELECT count(*) FROM {} WHERE user_id = $user"
#: By name in a receipt, the query that counts rows with words of the user.
_LEFT: Final = {
    "memories": _OF_USER.format("memories"),
    "archive": _OF_USER.format("archive"),
    "vectors": "SELECT count(*) FROM vectors SEMI JOIN (FROM memories WHERE user_id = $user) USING (seq)",
    **{_CALLED.get(table, table): _OF_USER.format(table) for table in NAMING},
}


class Forgotten(NamedTuple):
    """The commands of one moment (epoch ms): for the whole user, or for how many memory ids."""

    at: int
    whole_user: bool
    ids: int


class Erasure(NamedTuple):
    """A receipt: `commands` oldest first, the number of `memories` that were deleted, and the rows `left` by table.

    `in_pages`: the catalog's file may contain deleted rows until it is rewritten.
    """

    commands: list[Forgotten]
    memories: int
    left: dict[str, int]
    in_pages: bool


def erasure(db: duckdb.DuckDBPyConnection, user_id: str, in_pages: bool) -> Erasure:
    """Return a user's receipt, from the shard's tombstones, audit trail and remaining rows."""
    user = {"user": user_id}
    tables = {name for (name,) in db.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
    commands = db.execute(
        "SELECT epoch_ms(forgotten_at) AS at, bool_or(memory_id IS NULL) AS whole, count(memory_id) FROM tombstones "
        "WHERE user_id = $user GROUP BY forgotten_at ORDER BY forgotten_at",
        user,
    ).fetchall()
    ((memories,),) = db.execute(
        "SELECT count(DISTINCT memory_id) FROM transitions WHERE user_id = $user AND to_state = 'forgotten'", user
    ).fetchall()
    left = {
        name: int(db.execute(sql, user).fetchall()[0][0])
        for name, sql in _LEFT.items()
        if name != "vectors" or name in tables  # created with the first model
    }
    return Erasure([Forgotten(*row) for row in commands], int(memories), left, in_pages)
