"""Which memories were returned to whom: noted at each search, and told to the log a few seconds' together."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from schemas.events import Touch

#: In one record.
MOST_MEMORIES: Final = 1_000


@dataclass(slots=True)
class _OfUser:
    #: Epoch ms.
    newest: int = 0
    times: Counter[uuid.UUID] = field(default_factory=Counter)


class Accesses:
    """What was accessed since the last `take`. It is in memory alone: who is killed loses what was not taken.

    A user's accesses are one record that says how often each memory was returned, as of the newest of them. Whose
    partition moves meanwhile does not matter: any worker may write to the log.
    """

    def __init__(self) -> None:
        self._users: dict[str, _OfUser] = {}

    def note(self, user_id: str, ids: Iterable[uuid.UUID], at: int) -> None:
        """These were returned to the user at this moment (epoch ms)."""
        mine = self._users.setdefault(user_id, _OfUser())
        mine.newest = max(mine.newest, at)
        mine.times.update(ids)

    def take(self) -> list[Touch]:
        """The events of all that was noted, which is forgotten here."""
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
