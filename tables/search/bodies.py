"""A memory as bytes: what an answer shows of it, and ranking does not ask."""

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
    """All but what a row of its own holds: number, importance, moments, accesses, pin."""
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
    """Bytes of another memory, or none at all, do not have it."""
    return zlib.crc32(body, seq & 0xFFFFFFFF)


def memory_of(row: Row, body: memoryview) -> Memory:
    """The memory of a row and its body."""
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
    """How long the body of each row is in the file, int64[n]."""
    lengths = rows["body"].astype(np.int64)
    return lengths + -lengths % 8


class BodiesFile(AppendedFile):
    def put(self, bodies: Sequence[bytes]) -> npt.NDArray[np.int64]:
        """Write bodies; where each lies. Raises `OSError`."""
        start = self.append(b"".join(body + bytes(-len(body) % 8) for body in bodies))
        sizes = np.array([len(body) + -len(body) % 8 for body in bodies], np.int64)
        return start + np.cumsum(sizes) - sizes

    def of(self, row: Row) -> memoryview | None:
        """The row's body; None where the disk has lost it, or the catalog has another one."""
        if not row.flags & BODY:
            return None
        body = self.read(row.body_at, row.body)
        return body if check_of(body, row.seq) == row.body_check else None

    def wipe(self, row: Row) -> None:
        """Nothing of the row's body stays."""
        self.erase(row.body_at, row.body)
