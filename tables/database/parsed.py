"""Prepared SQL statements of one connection, each parsed only once.

Otherwise, DuckDB would parse the text of a statement at every execution, which is a third of the cost of a statement
over a few rows.
"""

from __future__ import annotations

import duckdb


class Parsed(dict[str, duckdb.Statement]):
    """Prepared statements by their SQL text. They are never dropped, so pass values that change as parameters.

    parsed = Parsed(db)
    db.execute(parsed["SELECT seq FROM memories WHERE seq > ?"], [7])
    """

    def __init__(self, db: duckdb.DuckDBPyConnection) -> None:
        super().__init__()
        self._db = db

    def __missing__(self, sql: str) -> duckdb.Statement:
        (self[sql],) = self._db.extract_statements(sql)
        return self[sql]
