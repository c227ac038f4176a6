"""Too many memories of one user: which go together, and the one that stands for each group.

Of the lowest scores, the oldest first, each takes along what is similar to it; what resembles nothing stays. Where no
two are similar and one has to leave, the two that are nearest make a group. The same memories make the same groups,
on a replay as well. A summary keeps the first line of each memory, which is what the user said: a model, where one
is configured, may find better words later.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from schemas.ids import SILTSTONE
from schemas.lifecycle import score_of
from schemas.memories import Memory, State
from schemas.settings import LongTermSettings
from schemas.sources import SOURCES, USUAL
from schemas.times import iso
from tables.memories import items
from tables.memories.sources import said_by, sources
from tables.memories.workspace import Workspace
from tables.vectors.index import Vectors

#: Memories that one summary stands for.
GROUP = 8
#: A tenth more leave than must, so that not every new memory makes a summary.
SLACK = 10
#: So many of the lowest scores are looked at for similar ones, and twice as many as have to leave.
LEAST_LOOKED_AT = 8 * GROUP
LINE_CHARS = 200
LINES = 64
KIND = "summary"


def make_room(
    space: Workspace, settings: LongTermSettings, at: int, forbidden: Callable[[Memory], bool]
) -> list[Memory]:
    """Summaries that have taken the place of some memories, where the user has more current ones than may be.

    Where a summary is `forbidden`, as one that was forgotten, its members stay as they are: nothing may say again
    together what they said in it.
    """
    space.load_current()
    memories = [memory for memory in space.known.values() if not items.is_item(memory)]
    limit = settings.max_memories_per_user
    excess = sum(memory.current for memory in memories) - limit
    if excess <= 0:
        return []
    scores = {memory.id: score_of(memory, at, space.lifecycle) for memory in memories}
    looked_at = loosest(memories, scores, excess, limit)
    vectors = space.vectors_of(looked_at)
    wholes = []
    for rows in groups(vectors, settings.group_cosine, excess, excess + limit // SLACK):
        members = [looked_at[row] for row in rows]
        whole = summary(members, space.next_seq, at, space.lifecycle.active)
        if forbidden(whole):
            continue
        space.add(whole, centre(vectors[rows]))
        wholes.append(whole)
        for member in members:
            space.change(replace(member, summarized_by=whole.id))
            space.note(member, at, "summarized", by=whole.id)
    return wholes


def loosest(memories: Iterable[Memory], scores: Mapping[uuid.UUID, float], excess: int, limit: int) -> list[Memory]:
    """Those among which groups are looked for: lowest score first, of equals the oldest."""
    loose = sorted(
        (memory for memory in memories if memory.current and not memory.pinned),
        key=lambda memory: (scores[memory.id], memory.created_at, memory.id),
    )
    # A group of n frees n - 1 places, as its summary takes one.
    leaving = (excess + limit // SLACK) * GROUP // (GROUP - 1) + 1
    return loose[: max(LEAST_LOOKED_AT, 2 * leaving)]


def groups(vectors: Vectors, least: float, excess: int, wanted: int) -> list[list[int]]:
    """Rows of float32[n, d] by similarity, which free `wanted` places where so many are similar: n - 1 each.

    Groups of two to `GROUP`: a row that is left and those that have a cosine of at least `least` with it. `excess`
    places are freed in any case, then by the two rows that are nearest, once and again.
    """
    left = list(range(len(vectors)))
    found: list[list[int]] = []
    freed = 0
    for row in range(len(vectors)):
        if freed >= wanted:
            return found
        if row not in left:
            continue
        cosines = vectors[left] @ vectors[row]
        nearest = np.argsort(-cosines, kind="stable")[: GROUP + 1]
        others = [left[place] for place in nearest if left[place] != row and cosines[place] >= least]
        if others:
            found.append(sorted([row, *others[: GROUP - 1]]))
            freed += len(found[-1]) - 1
            left = [one for one in left if one not in found[-1]]
    while freed < excess and len(left) > 1:
        cosines = vectors[left] @ vectors[left].T
        np.fill_diagonal(cosines, -np.inf)
        one, other = divmod(int(cosines.argmax()), len(left))
        found.append(sorted([left[one], left[other]]))
        freed += 1
        left = [row for row in left if row not in found[-1]]
    return found


def summary(members: Sequence[Memory], seq: int, at: int, active: float) -> Memory:
    """The memory that stands for others of the same user, made at `at` (epoch ms).

    Regardless of their scores, it is created active, at least as important as the border `active`, and as fresh as
    the newest access.
    """
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
        importance=max(70.0, active, *(memory.importance for memory in members)),
        created_at=at,
        last_accessed=max(at, *(memory.last_accessed for memory in members)),
        access_count=0,
        state=State.ACTIVE,
        pinned=False,
        meta={
            "summary": {"from": iso(members[0].created_at), "to": iso(members[-1].created_at)},
            **({} if (who := said_by(members)) == [*USUAL] else {SOURCES: who}),
        },
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
