"""What a memory is after an edit or in the words of a near-copy, and what of it was otherwise before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import orjson

from schemas.events import Edit
from schemas.fields import MAX_METADATA_BYTES
from schemas.memories import Memory
from schemas.sources import SOURCES, sources_in, together

#: The names in an exchange.
SPEAKERS: Final = "speakers"
#: What of a memory's metadata is Siltstone's own: no edit changes it.
OURS = ("promotion", SPEAKERS, "stored", "summary", "transitions", SOURCES)


def edited(memory: Memory, event: Edit) -> tuple[Memory, dict[str, Any]]:
    """The memory with what the event gives, and what stood in its place.

    Metadata that would outgrow what a record may have stays as it is, and `refused` says so in place of what it was.
    """
    before: dict[str, Any] = {}
    patch = {key: value for key, value in (event.metadata or {}).items() if key not in OURS}
    if event.metadata is not None and outgrows(memory.meta, patch):
        before["refused"] = "metadata"
    elif event.metadata is not None:
        before["metadata"] = {key: memory.meta.get(key) for key in patch}
        memory = replace(memory, meta=merge_patch(memory.meta, patch))
    if event.text is not None:
        before["text"] = memory.text
        memory = replace(memory, text=event.text)
        if event.sources:
            said_by = together(sources_in(memory.meta, memory.kind), event.sources)
            memory = replace(memory, meta={**memory.meta, SOURCES: said_by})
    return memory, before


def reworded(memory: Memory, copy: Memory) -> Memory:
    """The memory in the words of a near-copy, with the speakers whom these name."""
    meta = {key: value for key, value in memory.meta.items() if key != SPEAKERS}
    if SPEAKERS in copy.meta:
        meta[SPEAKERS] = copy.meta[SPEAKERS]
    return replace(memory, text=copy.text, meta=meta)


def outgrows(meta: Mapping[str, Any], patch: Mapping[str, Any]) -> bool:
    """Whether a memory with this metadata would have more than is allowed after this patch, and more than it has."""
    theirs = {key: value for key, value in patch.items() if key not in OURS}
    before, after = (_bytes_of(each) for each in (meta, merge_patch(meta, theirs)))
    return after > max(before, MAX_METADATA_BYTES)


def _bytes_of(meta: Mapping[str, Any]) -> int:
    return len(orjson.dumps({key: value for key, value in meta.items() if key not in OURS}))


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
