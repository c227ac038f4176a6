"""A user's right: what is forgotten leaves no word behind, in no other memory either."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from schemas.memories import Memory
from tables.workspace import Workspace


def forget(space: Workspace, memories: Sequence[Memory], at: int) -> int:
    """They are gone, and each summary that holds words of theirs; what these stood for holds again."""
    forgotten = 0
    while memories:
        ids = {memory.id for memory in memories}
        space.reckon(memories, at)
        for memory in memories:
            state = "archived" if memory.id in space.archived else memory.state
            space.move(memory, state, "forgotten", at, "forget")
            space.forget(memory)
            forgotten += 1
        space.load_behind(ids)
        for memory in list(space.known.values()):
            if memory.summarized_by in ids:
                memory = replace(memory, summarized_by=None)
            if memory.superseded_by in ids:
                memory = replace(memory, superseded_by=None)
            if memory is not space.known[memory.id]:
                space.change(memory)
        wholes = {memory.summarized_by for memory in memories if memory.summarized_by} - space.gone
        space.load(wholes - space.archived.keys())
        both = {**space.archived, **space.known}
        memories = [both[identity] for identity in wholes if identity in both]
    return forgotten
