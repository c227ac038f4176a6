"""Moves memories into the archive and back, and removes memories from the archive."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from schemas.events import Archive, Remove
from schemas.lifecycle import score_of, state_of
from schemas.memories import Memory
from tables.memories.workspace import Workspace


def archive(space: Workspace, memory: Memory, event: Archive) -> Literal["archived", "spared"]:
    """Archive a memory. Return the effect: "archived", or "spared" if the memory stays where it is."""
    if _is_spared(memory, event):
        return "spared"
    at, state = event.timestamp, memory.state
    space.archive(replace(memory, meta=space.with_transition(memory, state, "archived", at)), at, event.reason)
    space.move(memory, state, "archived", at, event.reason)
    return "archived"


def remove(space: Workspace, memory: Memory, event: Remove) -> Literal["removed", "spared"]:
    """Remove an archived memory. Return the effect: "removed", or "spared" if the memory stays where it is."""
    if _is_spared(memory, event):
        return "spared"
    space.unarchive(memory)
    space.move(memory, "archived", "removed", event.timestamp, event.reason)
    return "removed"


def _is_spared(memory: Memory, event: Archive | Remove) -> bool:
    """Return whether the memory stays, because it is pinned, or was accessed after cleanup decided on the event.

    A restoration counts as an access. An event without `last_accessed` spares no memory.
    """
    decided_on = event.last_accessed
    return decided_on is not None and (memory.pinned or memory.last_accessed > decided_on)


def restore(space: Workspace, memory: Memory, at: int) -> Literal["restored"]:
    """Move an archived memory out of the archive, back among the user's memories. Return the effect, "restored".

    This counts as an access at the time `at` (epoch ms). Otherwise the next cleanup would archive the memory again.
    """
    vector = space.catalog.archive.vectors([memory.seq])[0]
    back = replace(memory, last_accessed=max(memory.last_accessed, at))
    state = state_of(score_of(back, at, space.lifecycle), space.lifecycle)
    back = replace(back, state=state, meta=space.with_transition(back, "archived", state, at))
    space.unarchive(memory)
    # The memory gets a new number, because outdated index files may still list the old number.
    space.add(replace(back, seq=space.next_seq), vector)
    space.move(back, "archived", state, at, "restore")
    return "restored"
