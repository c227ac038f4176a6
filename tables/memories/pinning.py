"""Whose pin it is: a request's, with which what a user asked to remember is born, or a command's.

Neither decays. What a newer memory says better may take the place of the former: the user asked to remember what was
so then. The latter stays, because somebody decided on this very memory.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from schemas.memories import Memory

#: In `meta["promotion"]`, for as long as no command has pinned or unpinned the memory.
MARK: Final = "pinned"


def pinned_by_request(memory: Memory) -> Memory:
    """What was there already is asked for now; a pin of somebody's stays that."""
    if memory.pinned:
        return memory
    return replace(memory, pinned=True, meta={**memory.meta, "promotion": {**_promotion(memory), MARK: True}})


def pinned_by_command(memory: Memory, pinned: bool) -> Memory:
    """Pinned from now on, or not, whatever it was born as."""
    meta, promotion = memory.meta, _promotion(memory)
    if MARK in promotion:
        meta = {**meta, "promotion": {name: part for name, part in promotion.items() if name != MARK}}
    return replace(memory, pinned=pinned, meta=meta)


def is_request(memory: Memory) -> bool:
    """Whether nobody has pinned it but the user's words."""
    return memory.pinned and _promotion(memory).get(MARK) is True


def _promotion(memory: Memory) -> dict[str, Any]:
    """Empty as well where somebody's metadata has something else of this name."""
    found = memory.meta.get("promotion")
    return found if isinstance(found, dict) else {}
