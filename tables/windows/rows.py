"""Rows of a write-behind table: kept by partition, with what their changelog does not have yet."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

Row = TypeVar("Row")


class Change(NamedTuple):
    """A key's newest value in a partition; None deletes it."""

    partition: int
    key: bytes
    value: bytes | None


class Rows(Generic[Row]):
    """Rows by partition and key, which know what their changelog does not have yet.

    A row is as of the source offset that `offset_of` gives; where it gives none, rows are in the order of their log.
    """

    def __init__(
        self,
        encode: Callable[[Row], bytes],
        decode: Callable[[bytes], Row],
        offset_of: Callable[[Row], int] | None = None,
    ) -> None:
        self._encode, self._decode, self._offset_of = encode, decode, offset_of
        self._partitions: dict[int, dict[bytes, Row]] = {}
        #: What changed since changes were last taken, with the row as it was then.
        self._changed: dict[tuple[int, bytes], Row | None] = {}
        #: Partitions that were ours when changes were last taken, and ever since.
        self._taken_of: set[int] = set()

    def get(self, partition: int, key: bytes) -> Row | None:
        rows = self._partitions.get(partition)
        return rows.get(key) if rows is not None else None

    def put(self, partition: int, key: bytes, row: Row) -> None:
        rows = self._partitions.get(partition)
        if rows is None:
            rows = self._partitions[partition] = {}
        if (partition, key) not in self._changed:
            self._changed[partition, key] = rows.get(key)
        rows[key] = row

    def delete(self, partition: int, key: bytes) -> None:
        before = self._partitions.get(partition, {}).pop(key, None)
        if before is not None and (partition, key) not in self._changed:
            self._changed[partition, key] = before

    def __len__(self) -> int:
        return sum(map(len, self._partitions.values()))

    def partitions(self) -> list[int]:
        return sorted(self._partitions)

    def held(self, partition: int) -> Mapping[bytes, Row]:
        """The partition's rows by key, as they are: none may be put or deleted while they are used."""
        return self._partitions.get(partition, {})

    def items(self) -> Iterator[tuple[int, bytes, Row]]:
        """A snapshot: rows may be put and deleted while it is read."""
        for partition, rows in list(self._partitions.items()):
            for key, row in list(rows.items()):
                yield partition, key, row

    def restore(self, partition: int, rows: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Rows of the changelog, in its order.

        A row that is as of an earlier offset than the one before it was written by a worker that no longer owned the
        partition: it is left out.
        """
        self._drop_index()
        held = self._partitions.setdefault(partition, {})
        decode, offset_of = self._decode, self._offset_of
        for key, value in rows:
            if value is None:
                held.pop(key, None)
            elif offset_of is None:
                held[key] = decode(value)
            else:
                row, before = decode(value), held.get(key)
                if before is None or offset_of(row) >= offset_of(before):
                    held[key] = row

    def own(self, partitions: frozenset[int]) -> None:
        self._drop_index()
        self._partitions = {p: rows for p, rows in self._partitions.items() if p in partitions}
        self._changed = {place: before for place, before in self._changed.items() if place[0] in partitions}
        self._taken_of &= partitions

    def has_changes(self, partition: int) -> bool:
        return any(place == partition for place, _ in self._changed)

    def undo(self) -> None:
        """Rows are as they were when changes were last taken; nothing is changed.

        What was given back, or restored over a change, cannot be undone: `own` drops its partition before.
        """
        self._drop_index()
        for (partition, key), before in self._changed.items():
            if before is None:
                self._partitions.get(partition, {}).pop(key, None)
            else:
                self._partitions[partition][key] = before
        self._changed = {}

    def _drop_index(self) -> None:
        """Many rows change at once: a subclass that has an index of them drops it, and makes it anew when asked."""

    def drain(self) -> list[Change]:
        changed, self._changed = self._changed, {}
        self._taken_of = set(self._partitions)
        changes, partitions, none = [], self._partitions, dict[bytes, Row]()
        for partition, key in changed:
            row = partitions.get(partition, none).get(key)
            changes.append(Change(partition, key, None if row is None else self._encode(row)))
        return changes

    def requeue(self, changes: Sequence[Change]) -> None:
        for change in changes:
            if change.partition in self._taken_of:  # of one that moved away, they are its new owner's
                self._changed.setdefault((change.partition, change.key))
