"""A write-behind table: its rows by partition, including changes that the table's changelog does not have yet.

    put, delete ─▶ fresh ── drain ─▶ (the changelog takes them) ── written ─▶ kept rows, on the disk
                     │                        │                                    │ get
                     └──────── get ───────────┴──────────────── recent ◀───────────┘

Rows that the changelog does not have yet are in memory, decoded. Rows that it already has are in `KeptRows`; the most
recently used of them are in memory as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Final, Generic, Literal, NamedTuple, TypeVar

from tables.windows.kept_rows import KeptRows, MemoryRows
from tables.windows.resident import DECODED, EACH, Resident

Row = TypeVar("Row")


class Change(NamedTuple):
    """The newest value of a key in a partition. The value None deletes the row."""

    partition: int
    key: bytes
    value: bytes | None


class _Mark(Enum):
    """A placeholder for the earlier value of a changed row, if the kept rows still have that value."""

    KEPT = 1


KEPT: Final = _Mark.KEPT


class Rows(Generic[Row]):
    """The rows of one table by partition and key, with the changes that the table's changelog does not have yet.

    `offset_of` returns the newest source offset that a row includes. If a changelog has two values of a key, the one
    with the higher offset is used. Without `offset_of`, the later value is used.
    """

    def __init__(
        self,
        encode: Callable[[Row], bytes],
        decode: Callable[[bytes], Row],
        offset_of: Callable[[Row], int] | None = None,
        *,
        kept: KeptRows | None = None,
        resident: Resident | None = None,
    ) -> None:
        self._encode, self._decode, self._offset_of = encode, decode, offset_of
        self._kept: KeptRows = MemoryRows() if kept is None else kept
        #: Changed rows that `_kept` does not have yet, because the broker has not acknowledged them. The value None
        #: stands for a deleted row.
        self._fresh: dict[int, dict[bytes, Row | None]] = {}
        #: Caches of decoded kept rows. `_recent` has the rows used since the last call of `turn`; `_earlier` has the
        #: rows used between that call and the call before, and not since.
        self._recent: dict[int, dict[bytes, Row]] = {}
        self._earlier: dict[int, dict[bytes, Row]] = {}
        self._lengths = self._measured = 0
        self._resident = Resident() if resident is None else resident
        self._resident.add(self)
        #: Keys that were changed since the last `drain`, each with its value at that `drain`.
        self._changed: dict[tuple[int, bytes], Row | Literal[_Mark.KEPT] | None] = {}
        #: Partitions that had rows at the last `drain`, and have stayed with this worker since.
        self._taken_of: set[int] = set()
        #: Keys of the last `drain` that are still being written. `_overtaken` has those whose restored row is newer.
        self._drained: Mapping[tuple[int, bytes], object] = {}
        self._overtaken: set[tuple[int, bytes]] = set()
        #: By partition, the keys of rows that were restored since the last call of `touched`. It has only partitions
        #: whose tables were consistent before the recovery.
        self._touched: dict[int, set[bytes]] = {}

    def get(self, partition: int, key: bytes) -> Row | None:
        rows = self._fresh.get(partition)
        if rows is not None and key in rows:
            return rows[key]
        recent = self._recent.get(partition)
        if recent is not None and (found := recent.get(key)) is not None:
            return found
        return self._looked_up(partition, key)

    def _looked_up(self, partition: int, key: bytes) -> Row | None:
        row = self._earlier.get(partition, {}).pop(key, None)
        if row is None:
            raw = self._kept.get(partition, key)
            if raw is None:
                return None
            row = self._measure(raw)
            self._resident.read_back += 1
        self._recent.setdefault(partition, {})[key] = row
        self._resident.came()
        return row

    def _measure(self, raw: bytes) -> Row:
        self._lengths += len(raw)
        self._measured += 1
        return self._decode(raw)

    def put(self, partition: int, key: bytes, row: Row) -> None:
        rows = self._fresh.get(partition)
        if rows is None:
            rows = self._fresh[partition] = {}
        place = partition, key
        if place not in self._changed:
            self._changed[place] = rows.get(key, KEPT)
        rows[key] = row

    def delete(self, partition: int, key: bytes) -> None:
        if self.get(partition, key) is None:
            return
        rows = self._fresh.setdefault(partition, {})
        if (partition, key) not in self._changed:
            self._changed[partition, key] = rows.get(key, KEPT)
        rows[key] = None

    def __len__(self) -> int:
        """Return the number of rows, by a scan of all of them."""
        return sum(1 for _ in self.items())

    def partitions(self) -> list[int]:
        """Return the partitions that may have rows."""
        return sorted({*self._kept.partitions(), *(p for p, rows in self._fresh.items() if rows)})

    def items(self) -> Iterator[tuple[int, bytes, Row]]:
        """Yield all rows. Rows may be put and deleted during the iteration."""
        for partition in self.partitions():
            for key, row in self.of_partition(partition):
                yield partition, key, row

    def of_partition(self, partition: int, beginning: bytes = b"") -> Iterator[tuple[bytes, Row]]:
        """Yield the rows with this key prefix, as (key, row): kept rows in key order, then new rows.

        The rows are not added to the cache.
        """
        fresh = {key: row for key, row in self._fresh.get(partition, {}).items() if key.startswith(beginning)}
        for key, raw in self._kept.scan(partition, beginning):
            if key not in fresh:
                yield key, self._seen(partition, key, raw)
            elif (row := fresh.pop(key)) is not None:
                yield key, row
        for key, row in fresh.items():
            if row is not None:
                yield key, row

    def _seen(self, partition: int, key: bytes, raw: bytes) -> Row:
        """Return a row that a scan has read: the cached row, or else a row decoded from `raw`."""
        row = self._recent.get(partition, {}).get(key)
        return self._decode(raw) if row is None else row

    def keys(self, partition: int, beginning: bytes = b"") -> Iterator[bytes]:
        """Yield the keys with this prefix, without decoding rows."""
        fresh = {key: row for key, row in self._fresh.get(partition, {}).items() if key.startswith(beginning)}
        for key, _ in self._kept.scan(partition, beginning):
            if key not in fresh or fresh.pop(key) is not None:
                yield key
        yield from (key for key, row in fresh.items() if row is not None)

    def restore(self, partition: int, rows: Iterable[tuple[bytes, bytes | None]]) -> None:
        """Apply rows that were read from the changelog, in the changelog's order.

        A row is skipped if its source offset is lower than the offset of the present row with its key. It was written
        by a worker that no longer owned the partition. A row that is being written lies behind the restored rows in
        the changelog, so it stays, unless its source offset is lower.
        """
        touched = self._touched.setdefault(partition, set()) if self._kept.is_fitted(partition) else None
        offset_of, news = self._offset_of, dict[bytes, Row | None]()
        taken: list[tuple[bytes, bytes | None]] = []
        for key, value in rows:
            row = None if value is None else self._measure(value)
            if row is not None and offset_of is not None:
                before = news[key] if key in news else self.get(partition, key)
                if before is not None and offset_of(row) < offset_of(before):
                    continue
            news[key] = row
            taken.append((key, value))
        self._kept.restore(partition, taken)
        fresh = self._fresh.get(partition, {})
        for key, row in news.items():
            if self._drained and (partition, key) in self._drained:
                if not self._overtakes(partition, key, row):
                    continue
                self._overtaken.add((partition, key))
            self._hold(partition, key, row)
            if key in fresh:  # changed during the recovery: the restored value replaces the change
                fresh[key] = row
        if touched is not None:
            touched.update(news)
        self._resident.came()

    def _overtakes(self, partition: int, key: bytes, restored: Row | None) -> bool:
        """Return whether a restored row has a higher source offset than the row of its key that is being written."""
        drained = self._changed.get((partition, key), self._fresh[partition][key])
        if self._offset_of is None or restored is None or drained is None or drained is KEPT:
            return False
        return self._offset_of(drained) < self._offset_of(restored)

    def touched(self, partition: int) -> set[bytes] | None:
        """Return the keys of the rows that were restored since the last call.

        Return None if the tables were not consistent before the recovery. The caller must then check all keys.
        """
        touched = self._touched.pop(partition, set())
        return touched if self._kept.is_fitted(partition) else None

    def own(self, partitions: frozenset[int]) -> None:
        for held in (self._fresh, self._recent, self._earlier, self._touched):
            for partition in held.keys() - partitions:
                del held[partition]
        self._changed = {place: before for place, before in self._changed.items() if place[0] in partitions}
        self._drained = {place: None for place in self._drained if place[0] in partitions}
        self._overtaken = {place for place in self._overtaken if place[0] in partitions}
        self._taken_of &= partitions
        self._kept.own(partitions)

    def has_changes(self, partition: int) -> bool:
        return any(place == partition for place, _ in self._changed)

    def undo(self) -> None:
        """Set the rows back to their values at the last `drain`.

        Changes that were requeued, or overwritten by `restore`, cannot be undone. The caller must first drop the
        partitions that have such changes, by a call of `own`.
        """
        for (partition, key), before in self._changed.items():
            if before is KEPT:
                self._fresh[partition].pop(key, None)
            else:
                self._fresh[partition][key] = before
        self._changed = {}

    def drain(self) -> list[Change]:
        changed, self._changed = self._changed, {}
        self._taken_of, self._drained, self._overtaken = set(self.partitions()), changed, set()
        changes, fresh, encode = list[Change](), self._fresh, self._encode
        lengths = rows = 0
        for partition, key in changed:
            row = fresh[partition][key]
            if row is None:
                changes.append(Change(partition, key, None))
            else:
                value = encode(row)
                lengths += len(value)
                rows += 1
                changes.append(Change(partition, key, value))
        self._lengths += lengths
        self._measured += rows
        return changes

    def requeue(self, changes: Sequence[Change]) -> None:
        for change in changes:
            if change.partition in self._taken_of:  # otherwise the partition's new owner makes the change again
                self._changed.setdefault((change.partition, change.key), KEPT)
        self._drained, self._overtaken = {}, set()

    def written(self, changes: Sequence[Change]) -> None:
        """Move the changes of the last `drain` to the kept rows. Call it when the changelog has all of them."""
        changed, overtaken = self._changed, self._overtaken
        by_partition = dict[int, list[tuple[bytes, bytes | None]]]()
        for partition, key, value in changes:
            if partition not in self._taken_of:  # the partition's new owner reads the changelog
                continue
            rows = by_partition.get(partition)
            if rows is None:
                rows = by_partition[partition] = []
            place = partition, key
            if place not in overtaken:
                rows.append((key, value))
            fresh = self._fresh[partition]
            if place not in changed:
                self._hold(partition, key, fresh.pop(key))
            elif (before := changed[place]) is not KEPT:  # changed after the drain: use the drained value
                changed[place] = KEPT
                self._hold(partition, key, before)
        for partition, rows in by_partition.items():
            self._kept.write(partition, rows)
        self._drained, self._overtaken = {}, set()
        self._resident.came()

    def _hold(self, partition: int, key: bytes, row: Row | None) -> None:
        """Cache a row that the kept rows have now. If `row` is None, remove the key from the cache."""
        recent = self._recent.get(partition)
        if recent is None:
            recent = self._recent[partition] = {}
        if row is not None:
            recent[key] = row
            return
        recent.pop(key, None)
        self._earlier.get(partition, {}).pop(key, None)

    def cached_bytes(self) -> int:
        rows = sum(map(len, self._recent.values()))
        return rows * (EACH + DECODED * self._lengths // max(1, self._measured))

    def turn(self) -> None:
        self._earlier, self._recent = self._recent, {}
