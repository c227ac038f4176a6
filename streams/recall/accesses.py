"""Accesses: records which memories were returned to which user, because an access raises a memory's importance.

Accesses are noted at each search, and sent to the log as `touch` events every few seconds.
"""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from schemas.events import Touch

#: Maximum number of memories in one `touch` event.
MOST_MEMORIES: Final = 1_000


@dataclass(slots=True)
class _OfUser:
    #: Time of the user's newest access (epoch ms).
    newest: int = 0
    times: Counter[uuid.UUID] = field(default_factory=Counter)


class Accesses:
    """The accesses since the last `take`. They are only in RAM, so a worker that is killed loses them.

    A user's accesses become `touch` events of at most `MOST_MEMORIES` memories each. An event has the number of
    accesses of each memory, and the time of the user's newest access. Any worker may write these events to the log,
    so they can be sent even after the user's partition has moved to another worker.
    """

    def __init__(self) -> None:
        self._users: dict[str, _OfUser] = {}

    def note(self, user_id: str, ids: Iterable[uuid.UUID], at: int) -> None:
        """Note that these memories were returned to the user at the time `at` (epoch ms)."""
        mine = self._users.setdefault(user_id, _OfUser())
        mine.newest = max(mine.newest, at)
        mine.times.update(ids)

    def take(self) -> list[Touch]:
        """Return `touch` events for all noted accesses, and delete the notes."""
        users, self._users = self._users, {}
        return [event for user_id, mine in users.items() for event in _events(user_id, mine)]


def _events(user_id: str, mine: _OfUser) -> list[Touch]:
    ids = list(mine.times)
    return [
        Touch(
            event_id=uuid.uuid4(),
            user_id=user_id,
            timestamp=mine.newest,
            memory_ids=part,
            times=[] if all(mine.times[one] == 1 for one in part) else [mine.times[one] for one in part],
        )
        for part in (ids[first : first + MOST_MEMORIES] for first in range(0, len(ids), MOST_MEMORIES))
    ]
