"""Superseding: a newer memory replaces an older one, by a command, or because a statement in it updates the other.

The latter only if the setting `memory.updates` says so, because all else that the older memory says is replaced, too.
"""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from schemas.memories import Memory
from tables.memories import items, overflow
from tables.memories.pinning import may_be_replaced
from tables.memories.validity import SUMMARY, holds_again, superseded
from tables.memories.workspace import Workspace
from tables.search.search_rows import SearchRows
from tables.search.stated import key_of, value_of
from tables.search.statements import statements

#: The reason of a statement that updates another one, in the history of a memory.
UPDATE: Final = "update"
#: Kinds of memories that no statement updates, and whose statements update nothing.
_OTHER_KINDS: Final = (overflow.KIND, items.KIND)


def supersede(space: Workspace, older_id: uuid.UUID, newer_id: uuid.UUID, at: int, reason: str) -> int:
    """Supersede a memory by a newer one, because a command says so. Return 1, or 0 if that changes nothing.

    The newer one becomes current again, so that no cycle can arise.
    """
    newer = space.known[newer_id]
    if older_id == newer_id or space.known[older_id].superseded_by == newer_id:
        return 0
    if newer.superseded_by is not None:
        space.change(holds_again(newer))
    return _supersede(space, older_id, newer_id, at, reason)


def _supersede(space: Workspace, older_id: uuid.UUID, newer_id: uuid.UUID, at: int, reason: str) -> int:
    older, newer = space.known[older_id], space.known[newer_id]
    space.change(superseded(older, newer, reason))
    space.note(older, at, "superseded", by=newer_id, reason=reason)
    space.note(newer, at, "supersedes", memory_id=older_id, reason=reason)
    return 1


def follow(space: Workspace, newer: Memory) -> None:
    """Set when the memories that `newer` superseded ended. Call it if `newer` holds from another time than before."""
    space.load_behind({newer.id})
    for older in [one for one in space.known.values() if one.superseded_by == newer.id]:
        space.change(superseded(older, newer, SUMMARY if older.valid_to is None else UPDATE))


class Updating:
    """Lets the statements of a batch's memories supersede those that they update.

    A memory is superseded by the first one after it that states another value of the same, whether that one is
    superseded, too, or not. So neither the order of the events nor the sizes of the batches matter.
    """

    def __init__(self, rows: SearchRows) -> None:
        self._rows = rows
        #: By a memory's number, the values that it states, by what they are about.
        self._values: dict[int, Mapping[int, int]] = {}
        #: By user and by what a statement is about, the memories of this batch that make one.
        self._stating: defaultdict[tuple[str, int], set[uuid.UUID]] = defaultdict(set)

    def apply(self, space: Workspace, memory_id: uuid.UUID, at: int) -> int:
        """Supersede the memories that this one updates, and this one if a newer one updates it.

        Return the number of superseded memories.
        """
        memory = space.known[space.named(memory_id)]
        if memory.kind in _OTHER_KINDS or not (mine := self._values_of(memory)):
            return 0
        others = self._about_the_same(space, memory, mine)
        pairs = [
            (older, newer)
            for older, newer in (sorted((memory, other), key=_age) for other in others)
            if may_be_replaced(older) and newer.held_at(newer.said_at)
        ]
        done = 0
        for older, newer in sorted(pairs, key=lambda pair: _age(pair[1])):
            now = space.known[older.id]
            if now.superseded_by is None or self._comes_later(space, now, newer):
                done += _supersede(space, older.id, newer.id, at, UPDATE)
        return done

    def _about_the_same(self, space: Workspace, memory: Memory, mine: Mapping[int, int]) -> list[Memory]:
        """Return the user's other memories that state another value of the same, as they are now."""
        stored = self._rows.stating(memory.user_id, mine)
        ids = {one.id for one in stored}
        space.load(ids)
        for key in mine:
            ids |= self._stating[memory.user_id, key]
            self._stating[memory.user_id, key].add(memory.id)
        found = (space.known.get(identity) for identity in ids - {memory.id})
        return [one for one in found if one is not None and self._differs(one, mine)]

    def _differs(self, other: Memory, mine: Mapping[int, int]) -> bool:
        theirs = self._values_of(other) if other.kind not in _OTHER_KINDS else {}
        return any(mine[key] != theirs[key] for key in mine.keys() & theirs.keys())

    def _comes_later(self, space: Workspace, older: Memory, newer: Memory) -> bool:
        """Return whether the memory that superseded `older` also updates it, but was said after `newer`."""
        successor = space.known.get(older.superseded_by) if older.superseded_by is not None else None
        if successor is None or _age(successor) <= _age(newer):
            return False
        return self._differs(successor, self._values_of(older))

    def _values_of(self, memory: Memory) -> Mapping[int, int]:
        values = self._values.get(memory.seq)
        if values is None:
            words = [one.word for one in statements(memory.text)]
            values = self._values[memory.seq] = {key_of(word): value_of(word) for word in words}
        return values


def _age(memory: Memory) -> tuple[int, int]:
    return memory.said_at, memory.seq
