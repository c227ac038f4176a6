"""The origin of a pin: a user's request in a conversation, whose memory is created pinned, or a command.

Neither kind of pinned memory decays. A memory that a request pinned may be superseded, because it was true at the
time of the request, but may no longer be. A memory that a command pinned is not superseded, because the command named
this memory by its id.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from schemas.memories import Memory

#: The key in `meta["promotion"]` of a memory that a request pinned. A command that pins or unpins it removes the key.
MARK: Final = "pinned"


def pinned_by_request(memory: Memory) -> Memory:
    """Pin an existing memory because the user asked to remember it. A pinned memory is returned unchanged."""
    if memory.pinned:
        return memory
    return replace(memory, pinned=True, meta={**memory.meta, "promotion": {**_promotion(memory), MARK: True}})


def pinned_by_command(memory: Memory, pinned: bool) -> Memory:
    """Pin or unpin a memory, and remove the mark of a pin by a request."""
    meta, promotion = memory.meta, _promotion(memory)
    if MARK in promotion:
        meta = {**meta, "promotion": {name: part for name, part in promotion.items() if name != MARK}}
    return replace(memory, pinned=pinned, meta=meta)


def is_request(memory: Memory) -> bool:
    """Return whether the memory is pinned by a request, and no command has pinned or unpinned it since."""
    return memory.pinned and _promotion(memory).get(MARK) is True


def may_be_replaced(memory: Memory) -> bool:
    """Return whether a rule or a model may decide that a newer memory replaces this one.

    Not if its user says that it still holds, or a command pinned it. A memory that a request pinned may be replaced,
    because the new fact was not known at the time of the request.
    """
    return not memory.still_holds and (not memory.pinned or is_request(memory))


def _promotion(memory: Memory) -> dict[str, Any]:
    """Return the value of `promotion` in the metadata; an empty dict if it is missing or not an object."""
    found = memory.meta.get("promotion")
    return found if isinstance(found, dict) else {}
