"""Items: values under keys. An item is never merged or summarized, and does not decay.

The id of an item is its key. If the item can expire, its metadata has the time of expiry, under `stored`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, Literal

from schemas.events import Expire, Remember
from schemas.memories import Memory, State, without_reserved
from schemas.sources import SOURCES
from schemas.times import LATEST_MS, iso, parse_timestamp
from tables.memories.making import taken_from
from tables.memories.workspace import Workspace
from tables.vectors.index import Vectors

KIND: Final = "item"
#: The key in the `meta` of an item that can expire. The value has `ttl_seconds` and `expires_at`.
MARK: Final = "stored"


def is_put(event: Remember) -> bool:
    """Return whether the event writes an item."""
    return event.kind == KIND


def is_item(memory: Memory) -> bool:
    return memory.kind == KIND


def item(event: Remember, seq: int) -> Memory:
    """Return the item that the event writes. It replaces an earlier item of the same key completely.

    An item is pinned, so that its score does not decay.
    """
    assert event.memory_id is not None, "an item has a key"
    meta = without_reserved({key: value for key, value in (event.metadata or {}).items() if key != MARK})
    if event.sources:
        meta[SOURCES] = event.sources
    if event.ttl_seconds is not None:
        meta[MARK] = _stored(event.timestamp, event.ttl_seconds)
    return Memory(
        seq=seq,
        id=event.memory_id,
        kind=KIND,
        message_ids=tuple(event.message_ids),
        **taken_from(event),
        created_at=event.timestamp,
        last_accessed=event.timestamp,
        access_count=0,
        state=State.ACTIVE,
        pinned=True,
        meta=meta,
    )


def put(space: Workspace, event: Remember, vector: Vectors) -> Literal["new", "edited", "repeated"]:
    """Write the item under its key, and return the effect.

    If a memory of another kind has this id, do nothing and return "repeated".
    """
    written = item(event, space.next_seq)
    before = space.known.get(written.id) or space.archived.get(written.id)
    if before is not None and not is_item(before):
        return "repeated"
    if before is not None:
        (space.unarchive if written.id in space.archived else space.drop)(before)
    space.add(written, vector)
    return "new" if before is None else "edited"


def expire(space: Workspace, memory: Memory, event: Expire) -> bool:
    """Remove the item and return True. If it now expires later than the event says, keep it and return False."""
    ends = expires_at(memory)
    if ends is None or ends > event.expired_at:
        return False
    space.drop(memory)
    space.gone.add(memory.id)
    space.move(memory, memory.state, "removed", event.timestamp, "expired")
    return True


def lasts(meta: Mapping[str, Any]) -> int | None:
    """Return the seconds from the last write or read of an item to its expiry; None if it does not expire."""
    stored = meta.get(MARK)
    seconds = stored.get("ttl_seconds") if isinstance(stored, dict) else None
    return seconds if isinstance(seconds, int) else None


def expires_at(memory: Memory) -> int | None:
    """Return the time at which the memory expires (epoch ms); None if it does not. Only items expire."""
    if not is_item(memory) or MARK not in memory.meta:
        return None
    return parse_timestamp(memory.meta[MARK]["expires_at"])


def is_expired(memory: Memory, now: int) -> bool:
    """Return whether the memory has expired as of `now` (epoch ms). Answers omit it even before it is removed."""
    expiry = expires_at(memory)
    return expiry is not None and expiry <= now


def renewed(memory: Memory) -> Memory:
    """Return the memory after an access. If it can expire, it then expires `ttl_seconds` after that access."""
    if expires_at(memory) is None:
        return memory
    seconds = memory.meta[MARK]["ttl_seconds"]
    return replace(memory, meta={**memory.meta, MARK: _stored(memory.last_accessed, seconds)})


def _stored(at: int, seconds: int) -> dict[str, Any]:
    """Return the value of the metadata key `stored`. An expiry after the last valid time is set to that time."""
    return {"ttl_seconds": seconds, "expires_at": iso(min(at + seconds * 1000, LATEST_MS - 1))}
