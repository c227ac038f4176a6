"""Conversion of a memory to a DuckDB row of the tables `memories` and `archive`, and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, Final

import orjson
import pyarrow as pa

from schemas.memories import MEMORY_COLUMNS, Memory, State
from tables.memories.catalog.columns import jsons, moments, numbers, texts, uuids

#: The columns that queries read, in the order of `Memory`'s fields.
COLUMNS: Final = ", ".join(
    f"epoch_ms({name})" if column.type == "TIMESTAMP" else name for name, column in MEMORY_COLUMNS.items()
)
#: The columns that both tables, `memories` and `archive`, have.
STORED: Final = ", ".join(MEMORY_COLUMNS)

#: By the SQL type of a column, the function that converts the values of a field to an Arrow column.
_STAGED: Final[dict[str, Callable[[Sequence[Any]], pa.Array]]] = {
    "BIGINT": lambda values: pa.array(values, pa.int64()),
    "BOOLEAN": lambda values: pa.array(values, pa.bool_()),
    "DOUBLE": numbers,
    "JSON": jsons,
    "TIMESTAMP": moments,
    "UUID": uuids,
    "UUID[]": lambda values: pa.array([list(map(str, ids)) or None for ids in values], pa.list_(pa.string())),
    "VARCHAR": texts,
    "VARCHAR[]": lambda values: pa.array(values, pa.list_(pa.string())),
}
#: By the SQL type of a column, the function that converts a value that DuckDB returned to the value of the field.
_READ: Final[dict[str, Callable[[Any], Any]]] = {
    "JSON": orjson.loads,
    "UUID[]": lambda ids: tuple(ids or ()),
    "VARCHAR[]": tuple,
}
#: The places of the fields whose values are converted after a query.
_CONVERTED: Final = [
    (place, State if name == "state" else _READ[column.type])
    for place, (name, column) in enumerate(MEMORY_COLUMNS.items())
    if name == "state" or column.type in _READ
]
_values_of = attrgetter(*MEMORY_COLUMNS)


def memory_of(row: tuple[Any, ...]) -> Memory:
    """Return the memory in a row that was read with `COLUMNS`."""
    values = list(row)
    for place, convert in _CONVERTED:
        values[place] = convert(values[place])
    return Memory(*values)


def staged(memories: Sequence[Memory]) -> pa.Table:
    """Return the rows of these memories, to be inserted or updated, with the columns of `STORED`."""
    fields = list(zip(*map(_values_of, memories), strict=True)) or [()] * len(MEMORY_COLUMNS)
    return pa.table(
        {
            name: _STAGED[column.type](values)
            for (name, column), values in zip(MEMORY_COLUMNS.items(), fields, strict=True)
        }
    )
