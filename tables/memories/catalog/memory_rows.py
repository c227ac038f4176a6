"""Conversion of a memory to a DuckDB row of the tables `memories` and `archive`, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson
import pyarrow as pa

from schemas.memories import Memory, State
from tables.memories.catalog.columns import jsons, moments, numbers, texts, uuids

#: The columns that queries read, in the order of `Memory`'s fields.
COLUMNS = (
    "seq, id, user_id, session_id, agent_id, text, kind, message_ids, importance, epoch_ms(created_at), "
    "epoch_ms(last_accessed), access_count, state, pinned, meta, summary_of, summarized_by, superseded_by"
)
#: The columns that both tables, `memories` and `archive`, have.
STORED = (
    "seq, id, user_id, session_id, agent_id, text, kind, message_ids, importance, created_at, last_accessed, "
    "access_count, state, pinned, meta, summary_of, summarized_by, superseded_by"
)

_MESSAGE_IDS, _STATE, _META, _SUMMARY_OF = map(Memory.__slots__.index, ("message_ids", "state", "meta", "summary_of"))


def memory_of(row: tuple[Any, ...]) -> Memory:
    """Return the memory in a row that was read with `COLUMNS`."""
    values = list(row)
    values[_MESSAGE_IDS] = tuple(values[_MESSAGE_IDS])
    values[_STATE] = State(values[_STATE])
    values[_META] = orjson.loads(values[_META])
    values[_SUMMARY_OF] = tuple(values[_SUMMARY_OF] or ())
    return Memory(*values)


def staged(memories: Sequence[Memory]) -> pa.Table:
    """Return the rows of these memories, to be inserted or updated, with the columns of `STORED`."""
    return pa.table(
        {
            "seq": pa.array([m.seq for m in memories], pa.int64()),
            "id": uuids(m.id for m in memories),
            "user_id": texts([m.user_id for m in memories]),
            "session_id": texts([m.session_id for m in memories]),
            "agent_id": texts([m.agent_id for m in memories]),
            "text": texts([m.text for m in memories]),
            "kind": texts([m.kind for m in memories]),
            "message_ids": pa.array([m.message_ids for m in memories], pa.list_(pa.string())),
            "importance": numbers([m.importance for m in memories]),
            "created_at": moments([m.created_at for m in memories]),
            "last_accessed": moments([m.last_accessed for m in memories]),
            "access_count": pa.array([m.access_count for m in memories], pa.int64()),
            "state": texts([m.state for m in memories]),
            "pinned": pa.array([m.pinned for m in memories], pa.bool_()),
            "meta": jsons([m.meta for m in memories]),
            "summary_of": pa.array([list(map(str, m.summary_of)) or None for m in memories], pa.list_(pa.string())),
            "summarized_by": uuids(m.summarized_by for m in memories),
            "superseded_by": uuids(m.superseded_by for m in memories),
        }
    )
