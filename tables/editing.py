"""What a memory is after an edit, and what of it was otherwise before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from schemas.events import Edit
from schemas.memories import Memory

#: What of a memory's metadata is Siltstone's own: no edit changes it.
OURS = ("promotion", "speakers", "summary", "transitions")


def edited(memory: Memory, event: Edit) -> tuple[Memory, dict[str, Any]]:
    """The memory with what the event gives, and what stood in its place."""
    before: dict[str, Any] = {}
    if event.metadata is not None:
        patch = {key: value for key, value in event.metadata.items() if key not in OURS}
        before["metadata"] = {key: memory.meta.get(key) for key in patch}
        memory = replace(memory, meta=merge_patch(memory.meta, patch))
    if event.text is not None:
        before["text"] = memory.text
        memory = replace(memory, text=event.text)
    return memory, before


def merge_patch(target: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """RFC 7396: a null removes a key, an object is merged into an object, all else replaces."""
    merged = dict(target)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, Mapping):
            below = merged.get(key)
            merged[key] = merge_patch(below if isinstance(below, Mapping) else {}, value)
        else:
            merged[key] = value
    return merged
