"""Bodies: the fields of memories that an answer shows but ranking does not need, encoded as bytes."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, Final

import orjson

from schemas.memories import MEMORY_COLUMNS, Memory, State

#: The fields of a memory that its body has, in the order of the body.
BODY_FIELDS: Final = tuple(name for name, column in MEMORY_COLUMNS.items() if not column.ranked)


def body_of(memory: Memory) -> bytes:
    """Encode all fields of a memory except those that ranking reads: number, importance, access and pin."""
    return orjson.dumps(_values_of(memory))


def memory_of(body: bytes, ranked: dict[str, Any]) -> Memory:
    """Decode a memory from its body and the fields that ranking reads."""
    values = dict(zip(BODY_FIELDS, orjson.loads(body), strict=True))
    for name, convert in _CONVERTED:
        if (value := values[name]) is not None:
            values[name] = convert(value)
    return Memory(**values, **ranked)


def _ids(texts: Sequence[str]) -> tuple[uuid.UUID, ...]:
    return tuple(map(uuid.UUID, texts))


#: By the SQL type of a field, the function that converts its value in the JSON of a body, unless it is null.
_READ: Final[dict[str, Callable[[Any], Any]]] = {"UUID": uuid.UUID, "UUID[]": _ids, "VARCHAR[]": tuple}
_CONVERTED: Final = [
    (name, State if name == "state" else _READ[MEMORY_COLUMNS[name].type])
    for name in BODY_FIELDS
    if name == "state" or MEMORY_COLUMNS[name].type in _READ
]
_values_of = attrgetter(*BODY_FIELDS)
