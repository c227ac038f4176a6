"""Converts rows to Arrow columns, so that one statement inserts all rows. One statement takes about a millisecond."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

import orjson
import pyarrow as pa


def uuids(ids: Iterable[uuid.UUID | None]) -> pa.Array:
    """Return ids as a column that DuckDB reads without a cast."""
    return pa.array([None if identity is None else identity.int.to_bytes(16, "big") for identity in ids], pa.uuid())


def texts(values: Sequence[str | None]) -> pa.Array:
    return pa.array(values, pa.string())


def moments(values: Sequence[int | None]) -> pa.Array:
    """Return times (epoch ms) as a column of timestamps."""
    return pa.array(values, pa.timestamp("ms"))


def jsons(values: Sequence[Any]) -> pa.Array:
    return pa.array([orjson.dumps(value).decode() for value in values], pa.string())


def numbers(values: Sequence[float]) -> pa.Array:
    return pa.array(values, pa.float64())


#: By the name of a field in the rows of `Changes`, the function that converts its values to a column. Fields that are
#: not listed are texts.
_COLUMNS: Final[dict[str, Callable[[Sequence[Any]], pa.Array]]] = {
    "memory_id": uuids,
    "into_id": uuids,
    "source_id": uuids,
    "target_id": uuids,
    "occurred_at": moments,
    "created_at": moments,
    "forgotten_at": moments,
    "said_at": moments,
    "seen_at": moments,
    "score": numbers,
    "weight": numbers,
    "details": jsons,
}


def table_of(rows: Sequence[NamedTuple]) -> pa.Table:
    """Return an Arrow table of these rows, with one column for each field.

    There must be at least one row. All rows must have the same fields.
    """
    columns: dict[str, pa.Array] = {}
    for place, name in enumerate(rows[0]._fields):
        stored: Callable[[Sequence[Any]], pa.Array] = _COLUMNS.get(name, texts)
        columns[name] = stored([row[place] for row in rows])
    return pa.table(columns)
