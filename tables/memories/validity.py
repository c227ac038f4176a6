"""Validity: the time in which a memory held. A memory that supersedes it ends that time."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from schemas.memories import VALIDITY, Memory
from tables.memories.items import is_item

#: The reason with which an import supersedes a memory by its summary. The summary says the same, so it ends nothing.
SUMMARY: Final = "summary"


def superseded(older: Memory, newer: Memory, reason: str) -> Memory:
    """Return the older memory, superseded by the newer one. It held until the newer one began to hold.

    If its user said that it held for a shorter time, that stays. If it would begin after its end, because a
    correction restores an earlier statement, it held at no time.
    """
    older = holds_again(older)
    given = given_validity(older)
    meta = {**older.meta, VALIDITY: given} if given else older.meta
    if reason == SUMMARY:
        return replace(older, superseded_by=newer.id, meta=meta)
    ends = begins_after(newer, older.said_at)
    if older.valid_to is not None:
        ends = min(ends, older.valid_to)
    begins = older.valid_from if older.held_from < ends else ends
    return replace(older, superseded_by=newer.id, valid_from=begins, valid_to=ends, meta=meta)


def begins_after(memory: Memory, moment: int) -> int:
    """Return when a memory that updates what was said at a moment began to hold. All times are epoch ms.

    If it was created before that moment, it was said again since.
    """
    if memory.valid_from is not None:
        return memory.valid_from
    return memory.created_at if memory.created_at > moment else memory.said_at


def holds_again(memory: Memory) -> Memory:
    """Return the memory without a successor, with the time of validity that its user gave, if any."""
    if memory.superseded_by is None:
        return memory
    given = given_validity(memory)
    meta = {key: value for key, value in memory.meta.items() if key != VALIDITY}
    begins, ends = given.get("valid_from"), given.get("valid_to")
    return replace(memory, superseded_by=None, valid_from=begins, valid_to=ends, meta=meta)


def given_validity(memory: Memory) -> dict[str, int]:
    """Return the `valid_from` and `valid_to` (epoch ms) that the user gave, whatever superseded the memory."""
    if memory.superseded_by is not None:
        return dict(memory.meta.get(VALIDITY, {}))
    times = {"valid_from": memory.valid_from, "valid_to": memory.valid_to}
    return {name: at for name, at in times.items() if at is not None}


def ended_or_not_begun(memory: Memory, moment: int) -> bool:
    """Return whether a memory does not hold at a moment (epoch ms), because its user gave it another time."""
    not_begun = memory.valid_from is not None and moment < memory.valid_from
    return not_begun or (memory.valid_to is not None and memory.valid_to <= moment)


def may_hold(memory: Memory, begins: int | None, ends: int | None) -> bool:
    """Return whether a memory can be given a time of validity (epoch ms; None leaves a value as it is).

    An item has none, and the end of a superseded memory is the beginning of its successor.
    """
    after = with_validity(memory, begins, ends)
    in_order = after.valid_from is None or after.valid_to is None or after.valid_from <= after.valid_to
    return in_order and memory.superseded_by is None and not is_item(memory)


def with_validity(memory: Memory, begins: int | None, ends: int | None) -> Memory:
    """Return the memory with a time of validity by its user's word."""
    return replace(
        memory,
        valid_from=memory.valid_from if begins is None else begins,
        valid_to=memory.valid_to if ends is None else ends,
    )
