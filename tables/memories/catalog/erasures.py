"""What was forgotten of a user, and that nothing is left of it: looked up in the tables, not noted by hand."""

from __future__ import annotations

from typing import Final, NamedTuple

import duckdb

from tables.memories.catalog.erasing import NAMING

#: What a receipt calls otherwise than the schema does.
_CALLED: Final = {"merged": "near_copies"}
_OF_USER: Final = "SELECT count(*) FROM {} WHERE user_id = $user"
#: By what a receipt calls it: how many rows with words of the user's a shard holds.
_LEFT: Final = {
    "memories": _OF_USER.format("memories"),
    "archive": _OF_USER.format("archive"),
    "vectors": "SELECT count(*) FROM vectors SEMI JOIN (FROM memories WHERE user_id = $user) USING (seq)",
    **{_CALLED.get(table, table): _OF_USER.format(table) for table in NAMING},
}


class Forgotten(NamedTuple):
    """A command: the user, or how many ids of memories, and its time (epoch ms)."""

    at: int
    whole_user: bool
    ids: int


class Erasure(NamedTuple):
    """`commands` oldest first; `memories` were there and are gone; `left` are rows by table.

    `in_pages`: deleted rows may still lie in bytes of the catalog, until it is rewritten.
    """

    commands: list[Forgotten]
    memories: int
    left: dict[str, int]
    in_pages: bool


def erasure(db: duckdb.DuckDBPyConnection, user_id: str, in_pages: bool) -> Erasure:
    """Of one user, from the shard's tombstones and audit trail."""
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
        if name != "vectors" or name in tables  # made with the first model
    }
    return Erasure([Forgotten(*row) for row in commands], int(memories), left, in_pages)
