"""Which events go into one batch, and which memories they name."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence

from schemas.events import (
    Edit,
    ForgetUser,
    Link,
    LongTermEvent,
    Promotion,
    Remember,
    Restore,
    Supersede,
    Touch,
    Unlink,
)
from tables.memories.catalog.erasing import Named


def together(events: Sequence[LongTermEvent]) -> Sequence[LongTermEvent]:
    """Return the leading events that fit into one batch. An event that gives a memory another vector is alone.

    Near-copies of later texts can be found only after it is committed. Two users' events with the same id are in
    different batches.
    """
    ids = {event.event_id for event in events}
    if len(ids) == len(events) and not any(isinstance(event, Restore | Edit) for event in events):
        return events
    ids.clear()
    for place, event in enumerate(events):
        if isinstance(event, Restore) or (isinstance(event, Edit) and event.text is not None):
            return events[: place or 1]
        if event.event_id in ids:
            return events[:place]
        ids.add(event.event_id)
    return events


def named_ids(events: Sequence[LongTermEvent], beginnings: Mapping[uuid.UUID, Sequence[uuid.UUID]]) -> set[Named]:
    """Return the memories that the events name."""
    named: set[Named] = set()
    for event in events:
        if isinstance(event, Promotion):  # most are
            named.add((event.user_id, event.memory_id))
            named.update([(event.user_id, identity) for identity in beginnings[event.event_id]])
            continue
        match event:
            case Touch():
                ids = event.memory_ids
            case Link() | Unlink():
                ids = [event.source_id, event.target_id]
            case Remember():
                ids = [event.memory_id or event.event_id, *event.supersedes]
            case Supersede():
                ids = [event.memory_id, event.by]
            case ForgetUser():
                continue
            case _:
                named.add((event.user_id, event.memory_id))
                continue
        named.update((event.user_id, identity) for identity in ids)
    return named
