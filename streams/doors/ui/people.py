"""Lists from which the viewer chooses: users with the newest memories, and sessions with the newest messages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pydantic import BaseModel

from streams.doors.ui.workers import Told
from streams.service import MemoryService

#: The maximum number of users, and of sessions, that a page shows for all workers together.
MOST: Final = 50


class KnownUser(BaseModel):
    user_id: str
    memories: int
    newest: int


class KnownSession(BaseModel):
    user_id: str
    session_id: str
    last_at: int


class People(BaseModel):
    """The users with the newest memories and the sessions with the newest messages of one worker.

    Times are in epoch ms.
    """

    users: list[KnownUser]
    sessions: list[KnownSession]


async def people_of(service: MemoryService) -> People:
    """Return this worker's users with the newest memories, and its sessions with the newest messages."""
    users = [one for found in await service.shards.call_each(lambda shard: shard.users.newest(MOST)) for one in found]
    return People(
        users=[KnownUser(**one._asdict()) for one in users],
        sessions=[
            KnownSession(user_id=one.user_id, session_id=one.session_id, last_at=one.last_at)
            for one in service.live.newest_sessions(MOST)
        ],
    )


def newest_users(told: Told[People]) -> Sequence[KnownUser]:
    return sorted((one for each in told.each for one in each.users), key=lambda one: (-one.newest, one.user_id))[
        :MOST
    ]


def newest_sessions(told: Told[People]) -> Sequence[KnownSession]:
    found = (one for each in told.each for one in each.sessions)
    return sorted(found, key=lambda one: (-one.last_at, one.user_id, one.session_id))[:MOST]
