"""Numbered migrations of a shard's schema, each in its own transaction: `sql/m001_….sql` and following."""

from __future__ import annotations

from pathlib import Path

import duckdb

from schemas.errors import ShardError

SQL = Path(__file__).parent / "sql"


def statement(name: str) -> str:
    """Return the text of `tables/database/sql/<name>.sql`."""
    return (SQL / f"{name}.sql").read_text(encoding="utf-8")


def available() -> list[tuple[int, str]]:
    """Return the number and the name of every migration, in order."""
    names = sorted(path.stem for path in SQL.glob("m[0-9][0-9][0-9]_*.sql"))
    return [(int(name[1:4]), name) for name in names]


def migrate(connection: duckdb.DuckDBPyConnection, partition: int) -> None:
    """Bring the schema up to date. Raises `ShardError` if the file comes from a newer Siltstone."""
    connection.execute("CREATE TABLE IF NOT EXISTS migrations (number INTEGER, name VARCHAR)")
    row = connection.execute("SELECT coalesce(max(number), 0) FROM migrations").fetchone()
    assert row is not None
    done: int = row[0]
    known = available()
    if done > known[-1][0]:
        raise ShardError(partition, f"it was written by a newer Siltstone (schema {done}): upgrade this one")
    for number, name in known:
        if number > done:
            with transaction(connection):
                connection.execute(statement(name))
                connection.execute("INSERT INTO migrations VALUES (?, ?)", [number, name])


class transaction:  # noqa: N801  (`with transaction(db):` reads like a statement)
    """Runs a block between BEGIN and COMMIT, or ROLLBACK if the block raises an error."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        self._connection.execute("BEGIN TRANSACTION")

    def __exit__(self, exc_type: type[BaseException] | None, *_: object) -> None:
        self._connection.execute("COMMIT" if exc_type is None else "ROLLBACK")
