"""Creation of memories: builds the memory for a promotion, or for a request to remember a text."""

from __future__ import annotations

from operator import attrgetter

from schemas.events import Parts, Promotion, Remember
from schemas.memories import Memory, State
from schemas.sources import SOURCES
from tables.memories import pinning

_parts = attrgetter(*Parts.__slots__)


def as_memory(event: Promotion | Remember, seq: int) -> Memory:
    """Return the memory that the event creates, with the number `seq`."""
    meta = dict(event.metadata or {})
    if SOURCES in meta:  # only `event.sources` counts
        meta = {key: value for key, value in meta.items() if key != SOURCES}
    if event.sources:
        meta[SOURCES] = event.sources
    if isinstance(event, Promotion):
        meta["promotion"] = dict(zip(Parts.__slots__, _parts(event.parts), strict=True))
        if event.pinned:
            meta["promotion"][pinning.MARK] = True
        if event.speakers:
            meta["speakers"] = event.speakers
        identity, kind, message_ids = event.memory_id, "exchange", tuple(event.message_ids)
        created = event.started_at
    else:
        identity, kind, message_ids = event.memory_id or event.event_id, event.origin, tuple(event.message_ids)
        created = event.timestamp if event.created_at is None else event.created_at
    return Memory(
        seq=seq,
        id=identity,
        user_id=event.user_id,
        session_id=event.session_id,
        agent_id=event.agent_id,
        text=event.text,
        kind=kind,
        message_ids=message_ids,
        importance=event.importance,
        created_at=created,
        last_accessed=event.timestamp,
        access_count=0,
        state=State.ACTIVE,
        pinned=isinstance(event, Promotion) and event.pinned,
        meta=meta,
    )
