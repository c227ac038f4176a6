"""Locks of users: their requests are answered one after the other, and none is written while they are forgotten."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from weakref import WeakValueDictionary


@dataclass(slots=True, eq=False, weakref_slot=True)
class UserLock:
    """A user's locks.

    `answering` is held while a model is asked, `writing` only while a file is written or removed; forgetting waits
    only for `writing`. `forgotten` counts the forget commands; `begun` is its value when answering began.
    """

    answering: asyncio.Lock = field(default_factory=asyncio.Lock)
    writing: asyncio.Lock = field(default_factory=asyncio.Lock)
    forgotten: int = 0
    begun: int = 0


class UserLocks:
    """The locks of the users that are in use."""

    def __init__(self) -> None:
        self._users: WeakValueDictionary[str, UserLock] = WeakValueDictionary()

    def of(self, user_id: str) -> UserLock:
        """The user's locks, for as long as the caller keeps them."""
        user = self._users.get(user_id)
        if user is None:
            user = self._users[user_id] = UserLock()
        return user
