"""Overflow: replaces groups of similar memories by summaries when a user has too many memories.

Memories with the lowest scores are grouped first; of equal scores, the oldest. Each is grouped with memories that are
similar to it. A memory without similar ones stays. If these groups are not enough, the two nearest memories make a
group, repeatedly. The same memories always make the same groups, also in a replay. A summary has the first line of
each memory, which is the user's text. If a model is configured, it may write a better text later.
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
from tables.memories.likeness import least_cosines
from tables.memories.sources import said_by, sources
from tables.memories.workspace import Workspace
from tables.vectors.index import Vectors

#: The maximum number of memories that one summary replaces.
GROUP = 8
#: When summaries replace the memories above the limit, limit / `SLACK` more places are freed. Otherwise every new
#: memory would make another summary.
SLACK = 10
#: Groups are formed among at least this number of memories, those with the lowest scores. If many memories have to be
#: replaced, groups are formed among twice as many.
LEAST_LOOKED_AT = 8 * GROUP
LINE_CHARS = 200
LINES = 64
KIND = "summary"


def make_room(
    space: Workspace, settings: LongTermSettings, at: int, forbidden: Callable[[Memory], bool]
) -> list[Memory]:
    """Replace memories by summaries if the user has more current memories than the limit. Return the summaries.

    `forbidden` returns true if a summary must not be made, for example because it was forgotten. Its members then
    stay as they are.
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
    for rows in groups(vectors, _least(space, settings, looked_at), excess, excess + limit // SLACK):
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


def _least(space: Workspace, settings: LongTermSettings, memories: Sequence[Memory]) -> list[float]:
    """Return for each memory the least cosine of the memories that are summarized with it."""
    if settings.group_cosine is not None:
        return [settings.group_cosine] * len(memories)
    model = space.catalog.reembedding.model
    return [least_cosines(model, memory.text).group for memory in memories]


def loosest(memories: Iterable[Memory], scores: Mapping[uuid.UUID, float], excess: int, limit: int) -> list[Memory]:
    """Return the memories among which groups are formed, lowest score first. Of equal scores, the oldest is first.

    They are current and not pinned.
    """
    loose = sorted(
        (memory for memory in memories if memory.current and not memory.pinned),
        key=lambda memory: (scores[memory.id], memory.created_at, memory.id),
    )
    # A group of n memories frees n - 1 places, because its summary takes one place.
    leaving = (excess + limit // SLACK) * GROUP // (GROUP - 1) + 1
    return loose[: max(LEAST_LOOKED_AT, 2 * leaving)]


def groups(vectors: Vectors, least: float | Sequence[float], excess: int, wanted: int) -> list[list[int]]:
    """Group the rows of `vectors`, float32[n, d], by similarity until `wanted` places are free.

    A group of n rows frees n - 1 places. It has two to `GROUP` rows: the next row that is in no group, and rows with
    a cosine of at least `least` to it, which is one number, or a number for each row. If these groups free fewer than
    `excess` places, the two nearest rows that are in no group make a group, repeatedly.
    """
    bounds = np.broadcast_to(np.asarray(least, np.float32), len(vectors))
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
        others = [left[place] for place in nearest if left[place] != row and cosines[place] >= bounds[row]]
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
    """Return the summary of these memories, which are of one user. It is created at `at` (epoch ms).

    The summary is active regardless of the members' scores: its importance is at least that of each member and the
    threshold `active`, and its last access is not older than that of any member.
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
    """Return the text of a summary: the day and the first line of each memory. At most `LINES` lines.

    If a memory is itself a summary, all of its lines are included.
    """
    lines: dict[str, None] = {}
    for memory in members:
        if memory.kind == KIND:
            lines |= dict.fromkeys(memory.text.splitlines())
        else:
            said = next((line.strip() for line in memory.text.splitlines() if line.strip()), "")
            lines[f"{iso(memory.created_at)[:10]} {said[:LINE_CHARS]}"] = None
    return "\n".join(list(lines)[:LINES])


def centre(vectors: Vectors) -> Vectors:
    """Return the mean of the rows of float32[n, d] as a unit vector, float32[d].

    If the rows cancel each other out, return the first row.
    """
    mean = vectors.mean(axis=0)
    length = float(np.linalg.norm(mean))
    return np.asarray(mean / length if length > 1e-6 else vectors[0], np.float32)
