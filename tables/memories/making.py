"""Creation of memories: builds the memory for a promotion, or for a request to remember a text."""

from __future__ import annotations

from operator import attrgetter
from typing import Any, Final

from schemas.events import Parts, Promotion, Remember
from schemas.memories import MEMORY_COLUMNS, Memory, State, without_reserved
from schemas.sources import SOURCES
from tables.memories import pinning

_parts = attrgetter(*Parts.__slots__)
#: Fields of a memory that have another value or meaning in the event that creates it.
_OWN: Final = ("kind", "message_ids", "created_at", "pinned")
_OF_PROMOTION, _OF_REMEMBER = (
    [name for name in MEMORY_COLUMNS if name in event.model_fields and name not in _OWN]
    for event in (Promotion, Remember)
)
_promoted, _remembered = attrgetter(*_OF_PROMOTION), attrgetter(*_OF_REMEMBER)


def taken_from(event: Promotion | Remember) -> dict[str, Any]:
    """Return the fields that a memory has from the event that creates it, such as the text and the importance."""
    if isinstance(event, Promotion):
        return dict(zip(_OF_PROMOTION, _promoted(event), strict=True))
    return dict(zip(_OF_REMEMBER, _remembered(event), strict=True))


def as_memory(event: Promotion | Remember, seq: int) -> Memory:
    """Return the memory that the event creates, with the number `seq`."""
    meta = without_reserved(dict(event.metadata)) if event.metadata else {}
    if event.sources:
        meta[SOURCES] = event.sources
    if isinstance(event, Promotion):
        meta["promotion"] = dict(zip(Parts.__slots__, _parts(event.parts), strict=True))
        if event.pinned:
            meta["promotion"][pinning.MARK] = True
        if event.speakers:
            meta["speakers"] = event.speakers
        identity, kind = event.memory_id, "exchange"
        created = event.started_at
    else:
        identity, kind = event.memory_id or event.event_id, event.origin
        created = event.timestamp if event.created_at is None else event.created_at
    return Memory(
        seq=seq,
        id=identity,
        kind=kind,
        message_ids=tuple(event.message_ids),
        **taken_from(event),
        created_at=created,
        last_accessed=event.timestamp,
        access_count=0,
        state=State.ACTIVE,
        pinned=isinstance(event, Promotion) and event.pinned,
        meta=meta,
    )
