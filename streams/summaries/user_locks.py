"""Locks for the summaries of each user.

A user's requests are answered one after the other, and no summary is written while the user is being forgotten.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from weakref import WeakValueDictionary


@dataclass(slots=True, eq=False, weakref_slot=True)
class UserLock:
    """A user's locks.

    `answering` is held while requests are answered, `writing` only while a file is written or removed. A forget
    command waits only for `writing`. `forgotten` counts the forget commands. `begun` is the value of `forgotten` at
    the time when answering began.
    """

    answering: asyncio.Lock = field(default_factory=asyncio.Lock)
    writing: asyncio.Lock = field(default_factory=asyncio.Lock)
    forgotten: int = 0
    begun: int = 0


class UserLocks:
    """The locks of all users. Locks that no caller uses are dropped."""

    def __init__(self) -> None:
        self._users: WeakValueDictionary[str, UserLock] = WeakValueDictionary()

    def of(self, user_id: str) -> UserLock:
        """Return the user's locks. They exist as long as a caller has a reference to them."""
        user = self._users.get(user_id)
        if user is None:
            user = self._users[user_id] = UserLock()
        return user
