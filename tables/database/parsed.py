"""Statements of one connection, each parsed once.

DuckDB parses a text again whenever it executes it, which is a third of what a statement over a few rows costs.
"""

from __future__ import annotations

import duckdb


class Parsed(dict[str, duckdb.Statement]):
    """Statements by their texts. Every text stays, so parameters hold what changes from call to call.

    parsed = Parsed(db)
    db.execute(parsed["SELECT seq FROM memories WHERE seq > ?"], [7])
    """

    def __init__(self, db: duckdb.DuckDBPyConnection) -> None:
        super().__init__()
        self._db = db

    def __missing__(self, sql: str) -> duckdb.Statement:
        (self[sql],) = self._db.extract_statements(sql)
        return self[sql]
