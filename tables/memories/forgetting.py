"""Forgetting: removes a memory and all its words, also from summaries. Users have a right to this."""

from __future__ import annotations

import uuid
from dataclasses import replace

from tables.memories.validity import holds_again
from tables.memories.workspace import Workspace


def forget(space: Workspace, ids: set[uuid.UUID], at: int) -> int:
    """Remove these memories, and every summary that contains their words. Return the number of removed memories.

    Memories that a removed memory summarized or superseded become current again. `ids` may name memories that were
    removed before, because summaries and the history may still contain their words.
    """
    forgotten, done = 0, set[uuid.UUID]()
    while ids:
        done |= ids
        memories = [held[identity] for held in (space.archived, space.known) for identity in ids if identity in held]
        wholes = {memory.summarized_by for memory in memories if memory.summarized_by}
        wholes |= space.summed_up_in(ids)
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
                memory = holds_again(memory)
            if memory is not space.known[memory.id]:
                space.change(memory)
        space.erase(ids)
        ids = wholes - done
        space.load(ids)
        space.load_archived(ids)
    return forgotten
