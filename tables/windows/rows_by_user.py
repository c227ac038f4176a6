"""Rows of a write-behind table that are also found by their user, without looking through those of all others."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from tables.windows.rows import Rows

Row = TypeVar("Row")

#: A user's keys; most users have one, which is kept without a list around it.
_Keys = bytes | list[bytes]


class RowsByUser(Rows[Row]):
    """`user_of` says whose a row is; a key's row is always the same user's.

    The index is made when it is first asked for after an assignment, and kept up to date from then on.
    """

    def __init__(
        self,
        encode: Callable[[Row], bytes],
        decode: Callable[[bytes], Row],
        user_of: Callable[[Row], str],
        offset_of: Callable[[Row], int] | None = None,
    ) -> None:
        super().__init__(encode, decode, offset_of)
        self._user_of = user_of
        self._users: dict[int, dict[str, _Keys]] | None = None

    def of_user(self, partition: int, user_id: str) -> list[Row]:
        """The user's rows, in the order in which they came."""
        keys = self.index().get(partition, {}).get(user_id, [])
        rows = self._partitions.get(partition, {})
        return [rows[key] for key in ([keys] if isinstance(keys, bytes) else keys)]

    def of_partition(self, partition: int) -> list[Row]:
        return list(self._partitions.get(partition, {}).values())

    def index(self) -> dict[int, dict[str, _Keys]]:
        """By partition and user; a walk over all rows where there is none yet."""
        if self._users is None:
            self._users = {}
            for partition, key, row in self.items():
                self._enter(partition, key, row)
        return self._users

    def put(self, partition: int, key: bytes, row: Row) -> None:
        if self._users is not None and key not in self._partitions.get(partition, ()):
            self._enter(partition, key, row)
        super().put(partition, key, row)

    def delete(self, partition: int, key: bytes) -> None:
        held = self.get(partition, key)
        if held is not None and self._users is not None:
            users, user_id = self._users[partition], self._user_of(held)
            keys = users[user_id]
            if isinstance(keys, list):
                keys.remove(key)
            if not keys or isinstance(keys, bytes):
                del users[user_id]
        super().delete(partition, key)

    def _drop_index(self) -> None:
        self._users = None

    def _enter(self, partition: int, key: bytes, row: Row) -> None:
        assert self._users is not None
        users, user_id = self._users.setdefault(partition, {}), self._user_of(row)
        keys = users.get(user_id)
        if keys is None:
            users[user_id] = key
        elif isinstance(keys, bytes):
            users[user_id] = [keys, key]
        else:
            keys.append(key)
