"""The origin of a pin: a request (a memory that the user asked for is created pinned), or a command.

Neither kind of memory decays. A newer memory may supersede one that a request pinned: the user asked to remember what
was true then. One that a command pinned stays, because the command named this very memory.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from schemas.memories import Memory

#: A key in `meta["promotion"]`, until a command pins or unpins the memory.
MARK: Final = "pinned"


def pinned_by_request(memory: Memory) -> Memory:
    """Pin an existing memory that the user now asked for; an earlier pin stays as it is."""
    if memory.pinned:
        return memory
    return replace(memory, pinned=True, meta={**memory.meta, "promotion": {**_promotion(memory), MARK: True}})


def pinned_by_command(memory: Memory, pinned: bool) -> Memory:
    """Pin or unpin a memory, and drop the mark of a request's pin."""
    meta, promotion = memory.meta, _promotion(memory)
    if MARK in promotion:
        meta = {**meta, "promotion": {name: part for name, part in promotion.items() if name != MARK}}
    return replace(memory, pinned=pinned, meta=meta)


def is_request(memory: Memory) -> bool:
    """Whether a request alone has pinned it, and no command."""
    return memory.pinned and _promotion(memory).get(MARK) is True


def _promotion(memory: Memory) -> dict[str, Any]:
    """Return the promotion's metadata; empty if another value has this name."""
    found = memory.meta.get("promotion")
    return found if isinstance(found, dict) else {}
