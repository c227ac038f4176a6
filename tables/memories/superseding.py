"""Superseding: a newer memory replaces an older one, by a command, or because a statement in it updates the other.

The latter only if the setting `memory.updates` says so, because all else that the older memory says is replaced, too.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from typing import Final

from schemas.memories import STILL_HOLDS, Memory
from tables.memories import items, overflow
from tables.memories.pinning import is_request
from tables.memories.validity import holds_again, superseded
from tables.memories.workspace import Workspace
from tables.search.search_rows import SearchRows
from tables.search.stated import key_of, value_of
from tables.search.statements import statements

#: The reason of a statement that updates another one, in the history of a memory.
UPDATE: Final = "update"
#: Kinds of memories that no statement updates, and whose statements update nothing.
_OTHER_KINDS: Final = (overflow.KIND, items.KIND)


def supersede(space: Workspace, older_id: uuid.UUID, newer_id: uuid.UUID, at: int, reason: str) -> int:
    """Supersede a memory by a newer one. Return 1, or 0 if that changes nothing.

    The newer one becomes current again, so that no cycle can arise.
    """
    older, newer = space.known[older_id], space.known[newer_id]
    if older_id == newer_id or older.superseded_by == newer_id:
        return 0
    if newer.superseded_by is not None:
        newer = holds_again(newer)
        space.change(newer)
    space.change(superseded(older, newer))
    space.note(older, at, "superseded", by=newer_id, reason=reason)
    space.note(newer, at, "supersedes", memory_id=older_id, reason=reason)
    return 1


def outdate(space: Workspace, rows: SearchRows, memory_id: uuid.UUID, at: int) -> int:
    """Supersede the memories that a statement of this one updates, and this one if a newer one updates it.

    Return the number of superseded memories. `rows` are as before the batch.
    """
    memory = space.known[space.named(memory_id)]
    words = [one.word for one in statements(memory.text)] if _counts(memory) else []
    if not words:
        return 0
    stored = rows.stating(memory.user_id, words)
    space.load({one.id for one in stored})
    fresh = (one for one in space.changes.new.values() if one.user_id == memory.user_id)
    others = {one.id: one for one in (*map(space.as_it_is_now, stored), *fresh) if one is not None}
    return sum(supersede(space, older.id, newer.id, at, UPDATE) for older, newer in _updates(memory, others.values()))


def _updates(memory: Memory, others: Iterable[Memory]) -> list[tuple[Memory, Memory]]:
    """Return the pairs (older, newer) of `memory` and each of the others that state different values of the same.

    A memory that still holds by its user's word is not updated, nor is one that a command pinned.
    """
    mine, pairs = _values(memory), list[tuple[Memory, Memory]]()
    for other in others:
        theirs = _values(other) if other.id != memory.id and _counts(other) else {}
        if any(mine[key] != theirs[key] for key in mine.keys() & theirs.keys()):
            older, newer = sorted((memory, other), key=lambda one: (one.said_at, one.seq))
            if older.meta.get(STILL_HOLDS) is not True and (not older.pinned or is_request(older)):
                pairs.append((older, newer))
    return pairs


def _values(memory: Memory) -> Mapping[int, int]:
    words = [one.word for one in statements(memory.text)]
    return {key_of(word): value_of(word) for word in words}


def _counts(memory: Memory) -> bool:
    return memory.current and memory.kind not in _OTHER_KINDS
