"""Chooses the events for one batch, and collects the ids of the memories that these events name."""

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
    """Return the first events, as many as fit into one batch. A restore, or an edit of a text, is a batch by itself.

    These events give a memory another vector, which must be committed before later texts are compared with it. Two
    events of different users with the same id go into different batches.
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
    """Return (user id, memory id) of each memory that the events name, and of the `beginnings` of promotions.

    `beginnings` has, by a promotion's event id, the memory ids of shorter versions of its exchange.
    """
    named: set[Named] = set()
    for event in events:
        if isinstance(event, Promotion):  # checked first, because most events are promotions
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
