"""A memory as a row of DuckDB, in the shard's tables `memories` and `archive`, and back."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from typing import Any

import orjson
import pyarrow as pa

from schemas.memories import Memory, State

#: What is read of a row, in the order of `Memory`'s fields.
COLUMNS = (
    "seq, id, user_id, session_id, agent_id, text, kind, message_ids, importance, epoch_ms(created_at), "
    "epoch_ms(last_accessed), access_count, state, pinned, meta, summary_of, summarized_by, superseded_by"
)
#: The columns that both tables have.
STORED = (
    "seq, id, user_id, session_id, agent_id, text, kind, message_ids, importance, created_at, last_accessed, "
    "access_count, state, pinned, meta, summary_of, summarized_by, superseded_by"
)

_MESSAGE_IDS, _STATE, _META, _SUMMARY_OF = map(Memory.__slots__.index, ("message_ids", "state", "meta", "summary_of"))


def memory_of(row: tuple[Any, ...]) -> Memory:
    """The memory of a row of `COLUMNS`."""
    values = list(row)
    values[_MESSAGE_IDS] = tuple(values[_MESSAGE_IDS])
    values[_STATE] = State(values[_STATE])
    values[_META] = orjson.loads(values[_META])
    values[_SUMMARY_OF] = tuple(values[_SUMMARY_OF] or ())
    return Memory(*values)


def uuids(ids: Iterable[uuid.UUID | None]) -> pa.Array:
    """As DuckDB takes them without a cast."""
    return pa.array([None if identity is None else identity.bytes for identity in ids], pa.uuid())


def staged(memories: Sequence[Memory]) -> pa.Table:
    """Rows to be inserted or updated; times are epoch milliseconds."""
    return pa.table(
        {
            "seq": pa.array([m.seq for m in memories], pa.int64()),
            "id": uuids(m.id for m in memories),
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
            "summary_of": pa.array([list(map(str, m.summary_of)) or None for m in memories], pa.list_(pa.string())),
            "summarized_by": uuids(m.summarized_by for m in memories),
            "superseded_by": uuids(m.superseded_by for m in memories),
        }
    )
