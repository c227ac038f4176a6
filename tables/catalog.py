"""The DuckDB rows of one shard: the materialised truth of its partition's memories."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import duckdb
import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa

from schemas.errors import DataDirError, EmbeddingMismatch, ShardLocked
from schemas.memories import Memory, State
from tables.ageing import Ageing
from tables.analytics import Fingerprint, export
from tables.migrations import migrate, transaction

_COLUMNS = (
    "seq, id, user_id, session_id, agent_id, text, kind, message_ids, importance, epoch_ms(created_at), "
    "epoch_ms(last_accessed), access_count, state, pinned, meta"
)


class NewLink(NamedTuple):
    user_id: str
    source_id: uuid.UUID
    target_id: uuid.UUID
    kind: str
    weight: float
    created_at: int


class Tombstone(NamedTuple):
    """`memory_id` None: everything of the user up to `forgotten_at` (epoch ms)."""

    user_id: str
    memory_id: uuid.UUID | None
    forgotten_at: int


@dataclass(slots=True)
class Changes:
    """What one batch of events changes; written in one transaction."""

    new: list[Memory] = field(default_factory=list)
    vectors: list[npt.NDArray[np.float32]] = field(default_factory=list)
    updated: dict[uuid.UUID, Memory] = field(default_factory=dict)
    removed: dict[uuid.UUID, Memory] = field(default_factory=dict)
    links: list[NewLink] = field(default_factory=list)
    unlinked: list[tuple[uuid.UUID, uuid.UUID, str]] = field(default_factory=list)
    tombstones: list[Tombstone] = field(default_factory=list)
    applied: list[uuid.UUID] = field(default_factory=list)


class Catalog:
    """One shard's `catalog.duckdb`. Not thread-safe: the shard serialises its use."""

    def __init__(self, path: Path, partition: int) -> None:
        self.partition = partition
        self._path = path
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._db = duckdb.connect(str(path), config={"threads": 1, "checkpoint_threshold": "128MB"})
        except duckdb.IOException as exc:
            if "could not set lock" in str(exc).lower():
                raise ShardLocked(
                    partition, f"another process has {path} open; stop it, or wait for it to hand over"
                ) from exc
            raise DataDirError(path, str(exc).splitlines()[0]) from exc
        except OSError as exc:
            raise DataDirError(path.parent, exc.strerror or str(exc)) from exc
        migrate(self._db, partition)
        self.ageing = Ageing(self._db)

    def close(self) -> None:
        self._db.close()

    def bind_model(self, model: str, dimension: int) -> None:
        """Note the model of the shard's vectors; raises `EmbeddingMismatch` when they come from another."""
        info = dict(self._db.execute("SELECT key, value FROM shard_info").fetchall())
        if "model" not in info:
            with transaction(self._db):
                self._db.execute(f"CREATE TABLE vectors (seq BIGINT NOT NULL, vector FLOAT[{dimension:d}] NOT NULL)")
                self._db.executemany(
                    "INSERT INTO shard_info VALUES (?, ?)", [("model", model), ("dimension", str(dimension))]
                )
        elif (info["model"], info["dimension"]) != (model, str(dimension)):
            raise EmbeddingMismatch(
                self.partition,
                f"its vectors come from {info['model']} ({info['dimension']} dimensions), not from {model} "
                f"({dimension}): set `embedding` back, or run `siltstone reembed`",
            )

    def next_seq(self) -> int:
        return int(self._one("SELECT coalesce(max(seq), 0) + 1 FROM memories"))

    def applied(self, event_ids: Iterable[uuid.UUID]) -> set[uuid.UUID]:
        """Those of the events that are in already."""
        self._db.register("wanted", pa.table({"event_id": _uuids(event_ids)}))
        rows = self._db.execute(
            "SELECT event_id FROM applied WHERE event_id IN (SELECT event_id FROM wanted)"
        ).fetchall()
        return {row[0] for row in rows}

    def by_id(self, ids: Iterable[uuid.UUID]) -> dict[uuid.UUID, Memory]:
        self._db.register("wanted", pa.table({"id": _uuids(ids)}))
        rows = self._db.execute(f"SELECT {_COLUMNS} FROM memories WHERE id IN (SELECT id FROM wanted)").fetchall()
        return {memory.id: memory for memory in map(_memory, rows)}

    def by_seq(self, seqs: Iterable[int]) -> dict[int, Memory]:
        wanted = pa.array(list(seqs), pa.int64())
        if not len(wanted):
            return {}
        self._db.register("wanted", pa.table({"seq": wanted}))
        rows = self._db.execute(f"SELECT {_COLUMNS} FROM memories WHERE seq IN (SELECT seq FROM wanted)").fetchall()
        return {memory.seq: memory for memory in map(_memory, rows)}

    def of_user(self, user_id: str) -> list[Memory]:
        """All memories of a user, oldest number first."""
        rows = self._db.execute(
            f"SELECT {_COLUMNS} FROM memories WHERE user_id = ? ORDER BY seq", [user_id]
        ).fetchall()
        return [_memory(row) for row in rows]

    def tombstones(self, user_ids: Iterable[str]) -> list[Tombstone]:
        self._db.register("wanted", pa.table({"user_id": pa.array(list(user_ids), pa.string())}))
        rows = self._db.execute(
            "SELECT user_id, memory_id, epoch_ms(forgotten_at) FROM tombstones "
            "WHERE user_id IN (SELECT user_id FROM wanted)"
        ).fetchall()
        return [Tombstone(*row) for row in rows]

    def vectors(self, seqs: npt.NDArray[np.int64]) -> tuple[list[str], npt.NDArray[np.float32]]:
        """User ids and vectors, float32[n, d], of `seqs`, in their order."""
        self._db.register("wanted", pa.table({"seq": seqs, "place": np.arange(len(seqs))}))
        table: pa.Table = self._db.sql(
            "SELECT m.user_id, v.vector FROM wanted JOIN vectors v USING (seq) JOIN memories m USING (seq) "
            "ORDER BY place"
        ).to_arrow_table()
        flat = pa.concat_arrays([chunk.flatten() for chunk in table.column("vector").chunks])
        return table.column("user_id").to_pylist(), flat.to_numpy().reshape(table.num_rows, -1)

    def seqs(self) -> npt.NDArray[np.int64]:
        """The numbers of all memories that have a vector, ascending."""
        found = self._db.execute("SELECT seq FROM vectors ORDER BY seq").fetchnumpy()["seq"]
        return np.asarray(found, np.int64)

    def write(self, changes: Changes, now: int) -> None:
        """Commit a batch: rows, vectors and which events are in, together or not at all."""
        with transaction(self._db):
            if changes.removed:
                self._remove([memory.seq for memory in changes.removed.values()])
            if changes.new:
                self._insert(changes.new, changes.vectors)
            if changes.updated:
                self._update(list(changes.updated.values()))
            for source, target, kind in changes.unlinked:
                self._db.execute(
                    "DELETE FROM links WHERE source_id = ? AND target_id = ? AND kind = ?",
                    [source, target, kind],
                )
            for link in changes.links:
                self._db.execute("INSERT INTO links VALUES (?, ?, ?, ?, ?, make_timestamp_ms(?))", list(link))
            for tombstone in changes.tombstones:
                self._db.execute("INSERT INTO tombstones VALUES (?, ?, make_timestamp_ms(?))", list(tombstone))
            if changes.applied:
                self._db.register("staged", pa.table({"event_id": _uuids(changes.applied)}))
                self._db.execute("INSERT INTO applied SELECT event_id, make_timestamp_ms(?) FROM staged", [now])

    def _insert(self, memories: Sequence[Memory], vectors: Sequence[npt.NDArray[np.float32]]) -> None:
        self._db.register("staged", _staged(memories))
        self._db.execute(
            "INSERT INTO memories SELECT seq, id, user_id, session_id, agent_id, text, kind, message_ids, "
            "importance, make_timestamp_ms(created_at), make_timestamp_ms(last_accessed), access_count, state, "
            "pinned, NULL, NULL, NULL, meta FROM staged"
        )
        flat = np.ascontiguousarray(np.stack(vectors), np.float32)
        arrow = pa.FixedSizeListArray.from_arrays(pa.array(flat.ravel()), flat.shape[1])
        self._db.register("staged", pa.table({"seq": [memory.seq for memory in memories], "vector": arrow}))
        self._db.execute("INSERT INTO vectors SELECT seq, vector FROM staged")

    def _update(self, memories: Sequence[Memory]) -> None:
        self._db.register("staged", _staged(memories))
        self._db.execute(
            "UPDATE memories SET message_ids = staged.message_ids, importance = staged.importance, "
            "last_accessed = make_timestamp_ms(staged.last_accessed), access_count = staged.access_count, "
            "pinned = staged.pinned, meta = staged.meta FROM staged WHERE memories.seq = staged.seq"
        )

    def _remove(self, seqs: Sequence[int]) -> None:
        self._db.register("staged", pa.table({"seq": seqs}))
        self._db.execute(
            "DELETE FROM links USING memories m, staged WHERE m.seq = staged.seq "
            "AND (links.source_id = m.id OR links.target_id = m.id)"
        )
        for table in ("memories", "vectors"):
            self._db.execute(f"DELETE FROM {table} WHERE seq IN (SELECT seq FROM staged)")

    def rating(self, memory_id: uuid.UUID, model: str) -> int | None:
        """What the model answered when it was asked about this exchange; None where it was not."""
        rows = self._db.execute(
            "SELECT value FROM ratings WHERE memory_id = ? AND model = ?", [memory_id, model]
        ).fetchall()
        return int(rows[0][0]) if rows else None

    def keep_rating(self, memory_id: uuid.UUID, model: str, value: int, now: int) -> None:
        self._db.execute("INSERT INTO ratings VALUES (?, ?, ?, make_timestamp_ms(?))", [memory_id, model, value, now])

    def export(self, folder: Path, copied: Fingerprint | None) -> tuple[Fingerprint, frozenset[str]] | None:
        """Stage the rows for the analysts' copy, and which tables those are; None where all is as `copied`."""
        now = Fingerprint.of(self._path)
        return None if now == copied else (now, export(self._db, self.partition, folder))

    def count(self) -> int:
        return int(self._one("SELECT count(*) FROM memories"))

    def newest_event(self) -> int:
        """Epoch ms of the newest access or creation; 0 in an empty shard."""
        return int(self._one("SELECT coalesce(max(epoch_ms(last_accessed)), 0) FROM memories"))

    def _one(self, sql: str) -> Any:
        (row,) = self._db.execute(sql).fetchall()  # fetchone() would leave the result, and the connection, open
        return row[0]


def _uuids(ids: Iterable[uuid.UUID]) -> pa.Array:
    """As DuckDB takes them without a cast."""
    return pa.array([identity.bytes for identity in ids], pa.uuid())


def _staged(memories: Sequence[Memory]) -> pa.Table:
    return pa.table(
        {
            "seq": pa.array([m.seq for m in memories], pa.int64()),
            "id": _uuids(m.id for m in memories),
            "user_id": pa.array([m.user_id for m in memories], pa.string()),
            "session_id": pa.array([m.session_id for m in memories], pa.string()),
            "agent_id": pa.array([m.agent_id for m in memories], pa.string()),
            "text": pa.array([m.text for m in memories], pa.string()),
            "kind": pa.array([m.kind for m in memories], pa.string()),
            "message_ids": pa.array([list(m.message_ids) for m in memories], pa.list_(pa.string())),
            "importance": pa.array([m.importance for m in memories], pa.float64()),
            "created_at": pa.array([m.created_at for m in memories], pa.int64()),
            "last_accessed": pa.array([m.last_accessed for m in memories], pa.int64()),
            "access_count": pa.array([m.access_count for m in memories], pa.int64()),
            "state": pa.array([m.state.value for m in memories], pa.string()),
            "pinned": pa.array([m.pinned for m in memories], pa.bool_()),
            "meta": pa.array([orjson.dumps(m.meta).decode() for m in memories], pa.string()),
        }
    )


def _memory(row: tuple[Any, ...]) -> Memory:
    values = dict(zip(Memory.__slots__, row, strict=True))
    values |= {
        "message_ids": tuple(values["message_ids"]),
        "state": State(values["state"]),
        "meta": orjson.loads(values["meta"]),
    }
    return Memory(**values)
