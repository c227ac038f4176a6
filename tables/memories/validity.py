"""Validity: the time in which a memory held. A memory that supersedes it ends that time."""

from __future__ import annotations

from dataclasses import replace

from schemas.memories import Memory


def superseded(older: Memory, newer: Memory) -> Memory:
    """Return the older memory, superseded by the newer one. It held until the newer one began to hold.

    If it is known that the older one held for a shorter time, that stays. If it would begin after its end, because a
    correction restores an earlier statement, it held at no time.
    """
    ends = newer.created_at if newer.valid_from is None else newer.valid_from
    if older.valid_to is not None:
        ends = min(ends, older.valid_to)
    begins = older.valid_from if older.held_from < ends else ends
    return replace(older, superseded_by=newer.id, valid_from=begins, valid_to=ends)


def holds_again(memory: Memory) -> Memory:
    """Return the memory without a successor and without an end of its validity."""
    begins = None if memory.valid_from == memory.valid_to else memory.valid_from
    return replace(memory, superseded_by=None, valid_from=begins, valid_to=None)
