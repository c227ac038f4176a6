"""A part of a catalog: the queries and changes of one subject, on the catalog's connection."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

import duckdb
import pyarrow as pa

from tables.database.parsed import Parsed
from tables.memories.catalog.catalog_file import CatalogFile

P = ParamSpec("P")
T = TypeVar("T")
One = TypeVar("One", bound="Part")


class Part:
    """A part of a catalog. `file` is the catalog's file; the file's connection is used until `connect`."""

    def __init__(self, file: CatalogFile) -> None:
        self._file = file
        self.connect(file.db)

    def connect(self, db: duckdb.DuckDBPyConnection) -> None:
        """Use this connection to the same catalog from now on."""
        self._db, self._parsed = db, Parsed(db)

    def rest(self) -> None:
        """Release unused memory. Call it after work on many rows."""
        self._file.rest()

    def _over(self, staging: pa.Table, sql: str, *parameters: object) -> duckdb.DuckDBPyConnection:
        """Execute a statement that reads the table `staging`. DuckDB finds this Python variable by its name.

        DuckDB's `register` would first make a view, which takes longer than the statement itself if there are few
        rows. Later statements would then find that view instead of the variable.
        """
        return self._db.execute(self._parsed[sql], parameters)

    def _one(self, sql: str) -> Any:
        (row,) = self._db.execute(sql).fetchall()  # fetchone() would leave the result, and the connection, open
        return row[0]


def resting(method: Callable[Concatenate[One, P], T]) -> Callable[Concatenate[One, P], T]:
    """Decorate a method of a part that reads many rows: at its end, it releases the memory of its work."""

    @wraps(method)
    def rested(part: One, /, *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return method(part, *args, **kwargs)
        finally:
            part.rest()

    return rested
