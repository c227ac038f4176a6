"""Bodies: the fields of memories that an answer shows but ranking does not need, encoded as bytes."""

from __future__ import annotations

import uuid
import zlib
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import orjson

from schemas.memories import MEMORY_COLUMNS, Memory, State
from tables.search.appended import AppendedFile
from tables.search.row_file import BODY, BODY_FIELDS, PINNED, Row, Rows


def body_of(memory: Memory) -> bytes:
    """Encode all fields of a memory except those in its row: number, importance, times, accesses and pin."""
    return orjson.dumps(_values_of(memory))


def check_of(body: bytes | memoryview, seq: int) -> int:
    """Return a checksum of a body and its memory's number. It reveals lost bytes, and bytes of another memory."""
    return zlib.crc32(body, seq & 0xFFFFFFFF)


def memory_of(row: Row, body: memoryview) -> Memory:
    """Decode a memory from its row and its body."""
    values = dict(zip(BODY_FIELDS, orjson.loads(body), strict=True))
    for name, convert in _CONVERTED:
        if (value := values[name]) is not None:
            values[name] = convert(value)
    return Memory(
        **values,
        seq=row.seq,
        importance=row.importance,
        created_at=row.created_at,
        last_accessed=row.last_accessed,
        access_count=row.access_count,
        pinned=bool(row.flags & PINNED),
    )


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


def bytes_of(rows: Rows) -> npt.NDArray[np.int64]:
    """Return the length in bytes of each row's body in the file, with padding, int64[n]."""
    lengths = rows["body"].astype(np.int64)
    return lengths + -lengths % 8


class BodiesFile(AppendedFile):
    def put(self, bodies: Sequence[bytes]) -> npt.NDArray[np.int64]:
        """Write bodies and return the offset of each, int64[n]. Raises `OSError`."""
        start = self.append(b"".join(body + bytes(-len(body) % 8) for body in bodies))
        sizes = np.array([len(body) + -len(body) % 8 for body in bodies], np.int64)
        return start + np.cumsum(sizes) - sizes

    def of(self, row: Row) -> memoryview | None:
        """Return the row's body; None if it is stale, not written yet, or damaged on the disk."""
        if not row.flags & BODY:
            return None
        body = self.read(row.body_at, row.body)
        return body if check_of(body, row.seq) == row.body_check else None

    def wipe(self, row: Row) -> None:
        """Overwrite the row's body with zeros."""
        self.erase(row.body_at, row.body)
