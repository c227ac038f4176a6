"""Rows of a write-behind table with an index by user, so that a lookup does not scan other users' rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import orjson

from tables.windows.kept_rows import KeptRows
from tables.windows.resident import Resident
from tables.windows.rows import Change, Rows

Row = TypeVar("Row")


def beginning_of(*names: str) -> bytes:
    """Return the common prefix of all keys that begin with these ids: a user id, or a user id and a session id.

    Keys are JSON arrays.
    """
    return orjson.dumps(names)[:-1] + b","


class RowsByUser(Rows[Row]):
    """A write-behind table whose rows can be found by user. `user_of` returns the user id of a row.

    Each key must be a JSON array that begins with the user id.
    """

    def __init__(
        self,
        encode: Callable[[Row], bytes],
        decode: Callable[[bytes], Row],
        user_of: Callable[[Row], str],
        offset_of: Callable[[Row], int] | None = None,
        *,
        kept: KeptRows | None = None,
        resident: Resident | None = None,
    ) -> None:
        super().__init__(encode, decode, offset_of, kept=kept, resident=resident)
        self._user_of = user_of
        #: Keys of changed rows, by partition and user. `_new` has the rows changed since the last `drain`.
        #: `_being_written` has the rows of that `drain`, which are being written to the changelog.
        self._new: dict[tuple[int, str], dict[bytes, None]] = {}
        self._being_written: dict[tuple[int, str], dict[bytes, None]] = {}

    def of_user(self, partition: int, user_id: str) -> list[Row]:
        """Return the user's rows, in key order."""
        fresh = self._fresh.get(partition, {})
        found = {
            key: self._seen(partition, key, raw)
            for key, raw in self._kept.scan(partition, beginning_of(user_id))
            if key not in fresh
        }
        for key in self._unwritten(partition, user_id):
            row = fresh.get(key)
            if row is not None:
                found[key] = row
        return [found[key] for key in sorted(found)]

    def _unwritten(self, partition: int, user_id: str) -> dict[bytes, None]:
        """Return the keys of the user's rows whose content may differ from the content in the changelog."""
        user = partition, user_id
        return self._being_written.get(user, {}) | self._new.get(user, {})

    def put(self, partition: int, key: bytes, row: Row) -> None:
        if (partition, key) not in self._changed:
            self._enter(partition, key, row)
        super().put(partition, key, row)

    def delete(self, partition: int, key: bytes) -> None:
        row = self.get(partition, key)
        if row is not None:
            self._enter(partition, key, row)
            super().delete(partition, key)

    def _enter(self, partition: int, key: bytes, row: Row) -> None:
        named = partition, self._user_of(row)
        keys = self._new.get(named)
        if keys is None:
            self._new[named] = {key: None}
        else:
            keys[key] = None

    def own(self, partitions: frozenset[int]) -> None:
        super().own(partitions)
        self._new = {named: keys for named, keys in self._new.items() if named[0] in partitions}
        self._being_written = {named: keys for named, keys in self._being_written.items() if named[0] in partitions}

    def drain(self) -> list[Change]:
        self._join()
        self._being_written, self._new = self._new, {}
        return super().drain()

    def written(self, changes: Sequence[Change]) -> None:
        super().written(changes)
        self._being_written = {}

    def requeue(self, changes: Sequence[Change]) -> None:
        self._join()
        super().requeue(changes)

    def _join(self) -> None:
        for named, keys in self._being_written.items():
            self._new.setdefault(named, {}).update(keys)
        self._being_written = {}
