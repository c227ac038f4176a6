"""Differences between two shards of one partition: the live one, and one rebuilt from the same log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import duckdb
import numpy as np

from schemas.errors import ShardError
from schemas.memories import MEMORY_COLUMNS
from tables.database.database import connect
from tables.database.inspection import inspect_catalog
from tables.database.shard_info import read_info
from tables.memories.catalog.erasing import RECOMPUTED
from tables.vectors.vector_file import Head, VectorFile, path_of

#: The maximum number of ids that are listed for a table that differs.
NAMED = 5

#: Expressions that are compared instead of the columns: without the order of ids, and without the transitions of a
#: recompute.
_COMPARED = {
    "summary_of": "list_sort(summary_of) AS summary_of",
    "meta": "json_merge_patch(meta, '{\"transitions\": null}') AS meta",
}
_MEMORY = ", ".join(
    [*(_COMPARED.get(name, name) for name, column in MEMORY_COLUMNS.items() if column.compared), "expires_at"]
)
#: The compared columns of each table, the id first. Not compared are: values that depend on the time of their
#: computation (states, and the transitions of a recompute), the ids of applied events, row numbers, and ratings,
#: which are not in the log. History and transitions are compared from the time from which both shards have all rows.
_ROWS = {
    "memories": f"SELECT {_MEMORY} FROM {{db}}.memories",
    "archive": f"SELECT {_MEMORY}, archived_at, reason FROM {{db}}.archive",
    "links": "SELECT source_id, user_id, target_id, kind, weight, created_at FROM {db}.links "
    "SEMI JOIN ({there}) a ON a.id = source_id SEMI JOIN ({there}) b ON b.id = target_id",
    "history": "SELECT memory_id, user_id, occurred_at, event, details FROM {db}.history WHERE occurred_at >= {from}",
    "transitions": "SELECT memory_id, user_id, to_state, round(score, 6) AS score, occurred_at, reason "
    f"FROM {{db}}.transitions WHERE reason NOT IN {RECOMPUTED} AND occurred_at >= {{from}}",
    "merged": "SELECT memory_id, user_id, into_id FROM {db}.merged",
    "tombstones": "SELECT memory_id, user_id, max(forgotten_at) FROM {db}.tombstones GROUP BY ALL",
}
_THERE = "SELECT id FROM {db}.memories UNION ALL SELECT id FROM {db}.archive"
#: The minimum cosine of two vectors that count as equal. Vectors of the same text differ in the last digits if the
#: text was embedded in different batches.
_SAME = 0.9999
_AT_A_TIME = 10_000
_VECTORS = """
    SELECT id, a.slot, b.slot AS other
    FROM (SELECT m.id, m.user_id, v.slot FROM live.vectors v JOIN live.memories m USING (seq)) a
    FULL JOIN (SELECT m.id, m.user_id, v.slot FROM made.vectors v JOIN made.memories m USING (seq)) b
    USING (id, user_id)
    WHERE $users IS NULL OR list_contains($users, user_id)
"""


@dataclass(frozen=True, slots=True)
class TableDifference:
    """The numbers of rows that only one of the two shards has in a table. A changed row counts on both sides.

    `ids` has at most `NAMED` of the rows' ids.
    """

    partition: int
    table: str
    only_live: int
    only_rebuilt: int
    ids: list[str] = field(default_factory=list)


def differences(partition: int, live: Path, made: Path, users: Sequence[str] = ()) -> list[TableDifference]:
    """Compare two catalogs, or only the rows of some users. Return the tables that differ.

    Raises the errors of `inspect_catalog`, and `ShardError` if the two cannot be compared.
    """
    ours, theirs = inspect_catalog(partition, live), inspect_catalog(partition, made)
    if ours != theirs:
        raise ShardError(
            partition,
            f"its vectors come from {ours.model} ({ours.dimension}), and those of {made.parent.parent.parent} from "
            f"{theirs.model} ({theirs.dimension}): they cannot be compared",
        )
    try:
        with connect(temp_directory=f"{made}.tmp") as db:
            for name, path in (("live", live), ("made", made)):
                db.execute(f"ATTACH '{str(path).replace(chr(39), 2 * chr(39))}' AS {name} (READ_ONLY)")
            found = [_of_rows(db, partition, table, _since(db, table, sql), users) for table, sql in _ROWS.items()]
            found.append(_of_vectors(db, partition, (live, made), users))
    except duckdb.Error as exc:
        raise ShardError(partition, f"the two shards cannot be compared: {str(exc).splitlines()[0]}") from exc
    return [one for one in found if one is not None]


def _since(db: duckdb.DuckDBPyConnection, table: str, sql: str) -> str:
    """Replace `{from}` in the statement by the time from which both catalogs have all rows of the table."""
    moment = max(read_info(db, one).whole_from(table) for one in ("live", "made"))
    return sql.replace("{from}", f"make_timestamp_ms({moment:d})")


def _of_rows(
    db: duckdb.DuckDBPyConnection, partition: int, table: str, sql: str, users: Sequence[str]
) -> TableDifference | None:
    sql = sql.replace("{there}", _THERE)
    live, made = (f"SELECT * FROM ({sql.replace('{db}', name)})" for name in ("live", "made"))
    of_users = " WHERE list_contains($users, user_id)" if users else ""
    parameters = {"users": list(users)} if users else {}
    only = [
        [row[0] for row in db.execute(f"{one}{of_users} EXCEPT ALL {other}{of_users}", parameters).fetchall()]
        for one, other in ((live, made), (made, live))
    ]
    return _difference(partition, table, *only)


def _of_vectors(
    db: duckdb.DuckDBPyConnection, partition: int, paths: Sequence[Path], users: Sequence[str]
) -> TableDifference | None:
    files = [_vector_file(db, name, partition, path) for name, path in zip(("live", "made"), paths, strict=True)]
    try:
        live, made = list[object](), list[object]()
        found = db.execute(_VECTORS, {"users": list(users) or None})
        while rows := found.fetchmany(_AT_A_TIME):
            live += [identity for identity, _, there in rows if there is None]
            made += [identity for identity, here, _ in rows if here is None]
            both = [row for row in rows if None not in row]
            slots = [np.array([row[place] for row in both], np.int64) for place in (1, 2)]
            ours, theirs = (file.read(some) for file, some in zip(files, slots, strict=True))
            cosines = np.einsum("ij,ij->i", ours, theirs)
            norms = np.linalg.norm(ours, axis=1) * np.linalg.norm(theirs, axis=1)
            other = [row[0] for row, is_other in zip(both, cosines < _SAME * norms, strict=True) if is_other]
            live += other
            made += other
    finally:
        for file in files:
            file.close()
    return _difference(partition, "vectors", live, made)


def _vector_file(db: duckdb.DuckDBPyConnection, name: str, partition: int, path: Path) -> VectorFile:
    info = read_info(db, name)
    assert info.identity is not None
    if info.vectors_file is None or info.dimension is None:
        raise ShardError(partition, f"an older Siltstone wrote {path}: open it with a worker of this version first")
    if not path_of(path.parent, info.vectors_file).exists():
        raise ShardError(partition, f"{path_of(path.parent, info.vectors_file)} is missing")
    return VectorFile(path.parent, Head(info.identity, info.vectors_file, info.dimension))


def _difference(partition: int, table: str, live: list[object], made: list[object]) -> TableDifference | None:
    if not live and not made:
        return None
    return TableDifference(
        partition, table, len(live), len(made), sorted({str(one) for one in (*live, *made)})[:NAMED]
    )
