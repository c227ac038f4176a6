"""Bodies: the fields of memories that an answer shows but ranking does not need, encoded as bytes."""

from __future__ import annotations

import uuid
import zlib
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import orjson

from schemas.memories import Memory, State
from tables.search.appended import AppendedFile
from tables.search.row_file import BODY, PINNED, Row, Rows


def body_of(memory: Memory) -> bytes:
    """Encode all fields of a memory except those in its row: number, importance, times, accesses and pin."""
    return orjson.dumps(
        [
            memory.id,
            memory.user_id,
            memory.session_id,
            memory.agent_id,
            memory.text,
            memory.kind,
            memory.message_ids,
            memory.state,
            memory.meta,
            memory.summary_of,
            memory.summarized_by,
            memory.superseded_by,
        ]
    )


def check_of(body: bytes | memoryview, seq: int) -> int:
    """Return a checksum of a body and its memory's number. It reveals lost bytes, and bytes of another memory."""
    return zlib.crc32(body, seq & 0xFFFFFFFF)


def memory_of(row: Row, body: memoryview) -> Memory:
    """Decode a memory from its row and its body."""
    identity, user, session, agent, text, kind, messages, state, meta, members, whole, newer = orjson.loads(body)
    return Memory(
        seq=row.seq,
        id=uuid.UUID(identity),
        user_id=user,
        session_id=session,
        agent_id=agent,
        text=text,
        kind=kind,
        message_ids=tuple(messages),
        importance=row.importance,
        created_at=row.created_at,
        last_accessed=row.last_accessed,
        access_count=row.access_count,
        state=State(state),
        pinned=bool(row.flags & PINNED),
        meta=meta,
        summary_of=tuple(map(uuid.UUID, members)),
        summarized_by=None if whole is None else uuid.UUID(whole),
        superseded_by=None if newer is None else uuid.UUID(newer),
    )


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
