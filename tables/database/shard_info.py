"""Shard info: the table `shard_info` of a catalog, which has a text for each key.

Only this module reads and writes the table. The type of a key is the type of the field in `ShardInfo`.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, fields
from typing import Any, Final, Literal

import duckdb
import msgspec

from tables.database.parsed import Parsed

#: Writes rows that exist. Keys and values are lists, so that one statement, parsed once, can write any set of keys.
#: `INSERT OR REPLACE` takes twice as long, and every batch of events writes to this table.
_UPDATE: Final = (
    "UPDATE shard_info SET value = list_extract($values, list_position($keys, key)) WHERE list_contains($keys, key)"
)
#: Inserts the keys that have no row yet.
_INSERT: Final = "INSERT OR IGNORE INTO shard_info SELECT unnest($keys), unnest($values)"

#: Tables from which old rows are dropped.
AgedTable = Literal["transitions", "history", "ratings"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardInfo:
    """The keys of the table and their values. A field that was read is None if its key has no row.

    When `ShardInfo` is written, the rows of fields that are None stay as they are.
    """

    #: The shard's random id. The index files and the file of vectors have the same id.
    identity: uuid.UUID | None = None
    #: The model of the shard's vectors, float32[dimension].
    model: str | None = None
    dimension: int | None = None
    #: The model of an unfinished re-embedding. At its end, this model replaces `model`.
    next_model: str | None = None
    next_dimension: int | None = None
    #: The number in the name of the file of vectors, and the number in the name of the next model's file of vectors.
    vectors_file: int | None = None
    next_vectors_file: int | None = None
    #: The `seq` of the next new row.
    next_seq: int | None = None
    #: The offset of `long-term` up to which events are applied.
    position: int | None = None
    #: A counter that every commit of changes to the catalog raises.
    changes: int | None = None
    #: Generations of the index's manifests that fit the catalog: the newest, and the one before it.
    index: int | None = None
    index_before: int | None = None
    #: The generation of the search rows that fit the catalog.
    search_rows: int | None = None
    #: The settings of the last computation of states: active, cold, fresh days, half-life.
    lifecycle: str | None = None
    #: True if pages or the write-ahead log may contain forgotten data.
    to_erase: bool | None = None
    #: For each of three tables, the time (epoch ms) before which its rows were dropped.
    transitions_from: int | None = None
    history_from: int | None = None
    ratings_from: int | None = None

    def whole_from(self, table: str) -> int:
        """Return the time (epoch ms) from which the table has all its rows; 0 if none were dropped."""
        moments = {"transitions": self.transitions_from, "history": self.history_from, "ratings": self.ratings_from}
        return moments.get(table) or 0


_decode: Final = msgspec.json.Decoder(ShardInfo, strict=False).decode
_KEYS: Final = tuple(field.name for field in fields(ShardInfo))


def whole_from(table: AgedTable, moment: int) -> ShardInfo:
    """Return a `ShardInfo` that records that the table's rows before this time (epoch ms) were dropped."""
    match table:
        case "transitions":
            return ShardInfo(transitions_from=moment)
        case "history":
            return ShardInfo(history_from=moment)
        case "ratings":
            return ShardInfo(ratings_from=moment)


def read_info(db: duckdb.DuckDBPyConnection, schema: str = "main") -> ShardInfo:
    """Return the info of the connection's catalog, or of the attached catalog `schema`. Unknown keys are ignored."""
    rows = db.execute(f"SELECT key, value FROM {schema}.shard_info").fetchall()
    return _decode(msgspec.json.encode(dict(rows)))


def drop_info(db: duckdb.DuckDBPyConnection, *keys: str, schema: str = "main") -> None:
    """Delete the rows of these keys."""
    assert set(keys) <= set(_KEYS), keys
    db.execute(f"DELETE FROM {schema}.shard_info WHERE list_contains(?, key)", [list(keys)])


class InfoTable:
    """The table `shard_info` of a catalog. Changes are part of the catalog's transactions."""

    def __init__(self, db: duckdb.DuckDBPyConnection) -> None:
        self.connect(db)

    def connect(self, db: duckdb.DuckDBPyConnection) -> None:
        """Use this connection to the same catalog from now on."""
        self._db, self._parsed = db, Parsed(db)

    def read(self) -> ShardInfo:
        return read_info(self._db)

    def write(self, info: ShardInfo) -> None:
        """Write the fields that are not None. The other rows stay as they are."""
        said = {key: _text(value) for key in _KEYS if (value := getattr(info, key)) is not None}
        given = {"keys": list(said), "values": list(said.values())}
        ((written,),) = self._db.execute(self._parsed[_UPDATE], given).fetchall()
        if written < len(said):
            self._db.execute(self._parsed[_INSERT], given)

    def drop(self, *keys: str) -> None:
        drop_info(self._db, *keys)


def _text(value: Any) -> str:
    return str(int(value) if isinstance(value, bool) else value)
