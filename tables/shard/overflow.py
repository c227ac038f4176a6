"""Too many memories of one user: which go together, and the one that stands for each group.

The oldest of the lowest scores leave. Each group is the first of those that are left and what is most similar to it,
so the same memories make the same groups, on a replay as well. A summary keeps the first line of each memory, which
is what the user said: a model, where one is configured, may find better words later.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from schemas.lifecycle import score_of
from schemas.memories import Memory, State
from schemas.messages import SILTSTONE, iso
from tables.shard.sources import sources
from tables.shard.workspace import Workspace
from tables.vectors.index import Vectors

#: Memories that one summary stands for.
GROUP = 8
#: A tenth more leave than must, so that not every new memory makes a summary.
SLACK = 10
LINE_CHARS = 200
LINES = 64
KIND = "summary"


def make_room(space: Workspace, limit: int, at: int, forbidden: Callable[[Memory], bool]) -> list[Memory]:
    """Summaries that have taken the place of some memories, where the user has more current ones than `limit`.

    Where a summary is `forbidden`, as one that was forgotten, its members stay as they are: nothing may say again
    together what they said in it.
    """
    space.load_current()
    memories = list(space.known.values())
    if sum(memory.current for memory in memories) <= limit:
        return []
    giving_way = leaving(memories, {memory.id: score_of(memory, at, space.lifecycle) for memory in memories}, limit)
    vectors = space.vectors_of(giving_way)
    wholes = []
    for rows in groups(vectors):
        members = [giving_way[row] for row in rows]
        whole = summary(members, space.next_seq, at)
        if forbidden(whole):
            continue
        space.add(whole, centre(vectors[rows]))
        wholes.append(whole)
        for member in members:
            space.change(replace(member, summarized_by=whole.id))
            space.note(member, at, "summarized", by=whole.id)
    return wholes


def leaving(memories: Iterable[Memory], scores: Mapping[uuid.UUID, float], limit: int) -> list[Memory]:
    """Those that give way where there are more than `limit`: lowest score first, of equals the oldest."""
    current = [memory for memory in memories if memory.current]
    excess = len(current) - limit
    if excess <= 0:
        return []
    loose = sorted(
        (memory for memory in current if not memory.pinned),
        key=lambda memory: (scores[memory.id], memory.created_at, memory.id),
    )
    # A group of n frees n - 1 places, as its summary takes one.
    wanted = (excess + limit // SLACK) * GROUP // (GROUP - 1) + 1
    return loose[: max(2, wanted)]


def groups(vectors: Vectors) -> list[list[int]]:
    """Rows of float32[n, d] by similarity: groups of two to about `GROUP`; a single row is no group."""
    left = list(range(len(vectors)))
    found: list[list[int]] = []
    while len(left) > 1:
        nearest = np.argsort(-(vectors[left] @ vectors[left[0]]), kind="stable")
        chosen = {left[0], *(left[place] for place in nearest[:GROUP])}
        if len(left) - len(chosen) == 1:
            chosen.update(left)
        found.append(sorted(chosen))
        left = [row for row in left if row not in chosen]
    return found


def summary(members: Sequence[Memory], seq: int, at: int) -> Memory:
    """The memory that stands for others of the same user, made at `at` (epoch ms)."""
    members = sorted(members, key=lambda memory: (memory.created_at, memory.id))
    ids = tuple(memory.id for memory in members)
    user_id = members[0].user_id
    agents = {memory.agent_id for memory in members}
    sessions = {memory.session_id for memory in members}
    return Memory(
        seq=seq,
        id=uuid.uuid5(SILTSTONE, "\0".join((KIND, user_id, *map(str, sorted(ids))))),
        user_id=user_id,
        session_id=sessions.pop() if len(sessions) == 1 else None,
        agent_id=agents.pop() if len(agents) == 1 else None,
        text=extract(members),
        kind=KIND,
        message_ids=sources(*(memory.message_ids for memory in members)),
        importance=max(70.0, max(memory.importance for memory in members)),
        created_at=at,
        last_accessed=at,
        access_count=0,
        state=State.ACTIVE,
        pinned=False,
        meta={"summary": {"from": iso(members[0].created_at), "to": iso(members[-1].created_at)}},
        summary_of=ids,
    )


def extract(members: Sequence[Memory]) -> str:
    """What was said, a line for each memory, with its day; of a summary among them, all its lines."""
    lines: dict[str, None] = {}
    for memory in members:
        if memory.kind == KIND:
            lines |= dict.fromkeys(memory.text.splitlines())
        else:
            said = next((line.strip() for line in memory.text.splitlines() if line.strip()), "")
            lines[f"{iso(memory.created_at)[:10]} {said[:LINE_CHARS]}"] = None
    return "\n".join(list(lines)[:LINES])


def centre(vectors: Vectors) -> Vectors:
    """The unit vector, float32[d], in the middle of float32[n, d]; the first one where they cancel each other out."""
    mean = vectors.mean(axis=0)
    length = float(np.linalg.norm(mean))
    return np.asarray(mean / length if length > 1e-6 else vectors[0], np.float32)
