"""Editing: applies an edit or the text of a near-copy to a memory, and returns the former values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import orjson

from schemas.events import Edit
from schemas.fields import MAX_METADATA_BYTES
from schemas.memories import RESERVED, SAID_AGAIN, STILL_HOLDS, Memory
from schemas.sources import SOURCES, sources_in, together
from schemas.times import iso
from tables.memories.validity import holds_again, may_hold, with_validity
from tables.search.statements import statements

#: The metadata key for the names of the speakers of an exchange.
SPEAKERS: Final = "speakers"
#: Siltstone's own keys in a memory's metadata: no edit changes them.
OURS = ("promotion", SPEAKERS, "stored", "summary", "transitions", *RESERVED)


def edited(memory: Memory, event: Edit) -> tuple[Memory, dict[str, Any]]:
    """Return the edited memory, and its former values.

    If the new metadata would exceed the size limit, the metadata is not changed. The former values then have the key
    `refused` instead of `metadata`.
    """
    before: dict[str, Any] = {}
    patch = {key: value for key, value in (event.metadata or {}).items() if key not in OURS}
    if event.metadata is not None and outgrows(memory.meta, patch):
        before["refused"] = "metadata"
    elif event.metadata is not None:
        before["metadata"] = {key: memory.meta.get(key) for key in patch}
        memory = replace(memory, meta=merge_patch(memory.meta, patch))
    if patch.get(STILL_HOLDS) is True and memory.still_holds:
        before |= _validity(memory)
        memory = replace(holds_again(memory), valid_to=None)
    if (event.valid_from, event.valid_to) != (None, None):
        if may_hold(memory, event.valid_from, event.valid_to):
            before = _validity(memory) | before
            memory = with_validity(memory, event.valid_from, event.valid_to)
        else:
            before["refused"] = "validity"
    if event.text is not None:
        before["text"] = memory.text
        meta = {key: value for key, value in memory.meta.items() if key != SAID_AGAIN}
        if event.timestamp > memory.created_at and statements(event.text):
            meta[SAID_AGAIN] = event.timestamp
        memory = replace(memory, text=event.text, meta=meta)
        if event.sources:
            said_by = together(sources_in(memory.meta, memory.kind), event.sources)
            memory = replace(memory, meta={**memory.meta, SOURCES: said_by})
    return memory, before


def _validity(memory: Memory) -> dict[str, Any]:
    """Return the values of a memory's validity for its history. Values that it does not have are left out."""
    by = None if memory.superseded_by is None else str(memory.superseded_by)
    times = {"valid_from": memory.valid_from, "valid_to": memory.valid_to}
    known = {name: iso(at) for name, at in times.items() if at is not None}
    return known if by is None else {**known, "superseded_by": by}


def reworded(memory: Memory, copy: Memory) -> Memory:
    """Return the memory with the text and the speakers of a near-copy."""
    meta = {key: value for key, value in memory.meta.items() if key != SPEAKERS}
    if SPEAKERS in copy.meta:
        meta[SPEAKERS] = copy.meta[SPEAKERS]
    return replace(memory, text=copy.text, meta=meta)


def said_again(memory: Memory, copy: Memory) -> Memory:
    """Return the memory with the time of a near-copy, if the near-copy is newer and makes a statement."""
    if copy.created_at <= memory.said_at or not statements(copy.text):
        return memory
    return replace(memory, meta={**memory.meta, SAID_AGAIN: copy.created_at})


def outgrows(meta: Mapping[str, Any], patch: Mapping[str, Any]) -> bool:
    """Return whether the patched metadata would be larger than the limit, and larger than it is now.

    Siltstone's own keys (`OURS`) are not counted in the size.
    """
    theirs = {key: value for key, value in patch.items() if key not in OURS}
    before, after = (_bytes_of(each) for each in (meta, merge_patch(meta, theirs)))
    return after > max(before, MAX_METADATA_BYTES)


def _bytes_of(meta: Mapping[str, Any]) -> int:
    return len(orjson.dumps({key: value for key, value in meta.items() if key not in OURS}))


def merge_patch(target: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Return `target` with a JSON merge patch (RFC 7396) applied.

    A null removes a key, an object is merged into an object, and any other value replaces the old value.
    """
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
