"""Makes long-term memories of kind `summary_item` from the preferences and decisions of a summary."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Final

from schemas.events import Remember
from schemas.ids import SILTSTONE, event_id
from streams.summaries.queue import Group
from streams.summaries.rules.drafting import Draft

#: The importance of a memory that is made of a preference or decision. It is lower than the importance of a memory
#: that a user has explicitly asked for.
PROMOTED_IMPORTANCE: Final = 75.0


def promoted(group: Group, draft: Draft) -> Iterator[Remember]:
    """Yield the events that make memories of the draft's items.

    An item has the same id in every summary that contains it, so it becomes only one memory.
    """
    newest, user_id = max(one.heading.newest for one in group.asked), group.of.user_id
    for item in draft.items:
        identity = uuid.uuid5(SILTSTONE, f"summary_item/{user_id}/{','.join(item.sources)}/{item.text}")
        yield Remember(
            event_id=event_id("summary_item", identity),
            user_id=user_id,
            timestamp=newest,
            memory_id=identity,
            text=item.text,
            importance=PROMOTED_IMPORTANCE,
            origin="summary_item",
            message_ids=list(item.sources),
            topic=item.topic,
            metadata={"date": group.of.day.isoformat()},
        )
