"""The windows' rows of a worker's partitions on its disk, one store each, with the tables' rows side by side.

A batch has the rows of all tables that their changelogs took together, and up to where each of those is in it then:
a partition that comes, or comes back, reads the rest of its changelogs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from schemas.times import now_ms
from schemas.topic_specs import SLEPT_TOO_LONG_MS
from tables.windows.partition_store import Copied, Memory, PartitionStore, Place, State, holds_rows, remove_rows

#: What a command deletes of all tables is written by then.
SETTLED_MS: Final = 30_000


class Begun(NamedTuple):
    """Of a partition, when changes were taken (epoch ms): whether its tables fitted each other, and what to erase."""

    at: int
    fitted: bool
    erase: frozenset[bytes]


class WindowStores:
    """`topic_ids` are those of the changelogs: rows are of the topic that they were read from, and of no other.

    stores = WindowStores(folder)
    rows = stores.table("group-sessions-changelog", b"s")
    stores.open(3); place = stores.resume("group-sessions-changelog", 3)
    rows.write(3, …); stores.commit(3, {"group-sessions-changelog": place}, stores.begin())
    """

    def __init__(self, folder: Path, now: Callable[[], int] = now_ms) -> None:
        self.folder, self.now = folder, now
        self.topic_ids: Mapping[str, str] = {}
        self._memory = Memory()
        self._open: dict[int, PartitionStore] = {}
        self._tables: dict[str, DiskRows] = {}
        #: When each partition was opened, or its changelogs were begun to be read (epoch ms).
        self._since: dict[int, int] = {}
        #: Beginnings of keys, by partition.
        self._to_erase: dict[int, set[bytes]] = {}

    def table(self, changelog: str, prefix: bytes) -> DiskRows:
        """The rows of one changelog, under keys that begin with this letter."""
        table = self._tables[changelog] = DiskRows(self, prefix)
        return table

    def partitions(self) -> list[int]:
        return sorted(self._open)

    def store(self, partition: int) -> PartitionStore | None:
        return self._open.get(partition)

    def open(self, partition: int) -> None:
        """Raises `WindowsLocked`, `DataDirError`."""
        self._open[partition] = PartitionStore(self.folder / str(partition), self._memory)

    def leave(self, partition: int) -> PartitionStore:
        """It is not among the open ones any more; what comes back is to be closed, in any thread."""
        self._to_erase.pop(partition, None)  # it is asked for again: its command was not committed
        return self._open.pop(partition)

    def former(self) -> frozenset[int]:
        """The partitions of which something is on the disk, and that are not open."""
        if not self.folder.is_dir():
            return frozenset()
        there = {int(path.name) for path in self.folder.iterdir() if path.name.isdecimal() and holds_rows(path)}
        return frozenset(there - self._open.keys())

    def drop(self, partition: int) -> None:
        """Remove the files of a partition that is not open. Call it on the thread that opens stores.

        Raises `WindowsLocked` where another worker has it open, `DataDirError`.
        """
        if partition not in self._open:
            remove_rows(self.folder / str(partition))

    def resume(self, changelog: str, partition: int) -> Place | None:
        """Up to where the changelog need not be read again; None where it is to be read from the start.

        Then none of its rows are kept.
        """
        store, now = self._open[partition], self.now()
        self._since[partition] = now
        place, identity = store.state.places.get(changelog), self.topic_ids.get(changelog)
        if place is not None and identity == place.topic_id and now - SLEPT_TOO_LONG_MS < place.at <= now:
            return place
        self.clear(changelog, partition)
        return None

    def clear(self, changelog: str, partition: int) -> None:
        """None of the changelog's rows are kept."""
        store = self._open[partition]
        store.discard()
        store.clear(self._tables[changelog].prefix)
        store.fitted = False
        store.commit(State(places={name: place for name, place in store.state.places.items() if name != changelog}))

    def begin(self) -> Mapping[int, Begun]:
        """To be asked for in the same step in which changes are taken, by partition."""
        now, none = self.now(), frozenset[bytes]()
        erase = {partition: frozenset(due) for partition, due in self._to_erase.items()}
        return {p: Begun(now, store.fitted, erase.get(p, none)) for p, store in self._open.items()}

    def commit(
        self, partition: int, ends: Mapping[str, tuple[int | None, int, int]], begun: Mapping[int, Begun]
    ) -> None:
        """Write what was put since the last time. `ends`: up to where each changelog is in that, where it is known.

        … how many rows it has come to, and its records' offset (`Place`). Raises `DataDirError`.
        """
        store = self._open.get(partition)
        if store is None or partition not in begun:
            return
        at, fitted, erase = begun[partition]
        places = dict(store.state.places)
        for changelog, (offset, rows, read) in ends.items():
            if offset is not None and (identity := self.topic_ids.get(changelog)):
                places[changelog] = Place(identity, offset, rows, at, read)
        for beginning in erase:
            for table in self._tables.values():
                store.erase_later(table.prefix + beginning, at)
        store.commit(State(fitted=fitted, places=places))
        if erase:
            self._to_erase[partition] -= erase

    def restored(self, changelog: str, partition: int, offset: int, rows: int, read: int) -> None:
        """Its rows before this offset were read; what lies behind it is still to be. Raises `DataDirError`."""
        store = self._open[partition]
        places = dict(store.state.places)
        before = places.get(changelog)
        if identity := self.topic_ids.get(changelog):
            at = self._since[partition] if before is None else before.at
            places[changelog] = Place(identity, offset, rows, at, read)
        store.commit(State(fitted=False, places=places))

    def fitted(self, partition: int) -> None:
        """The tables fit each other in memory; what that took is in the next changes that are taken."""
        if (store := self._open.get(partition)) is not None:
            store.fitted = True

    def changes(self, partition: int) -> int | None:
        """Another number after each change of a partition's rows and each erasure; None where it is not open."""
        store = self._open.get(partition)
        return None if store is None else store.changes

    def snapshot(self, partition: int, folder: Path) -> Copied:
        """A copy of a partition's rows in a folder that is not there yet, and up to where its changelogs are in it.

        Its files are links to those of the store, and never change. It may be asked for in a thread of its own.
        Raises `KeyError` where the partition is not open, `DataDirError`.
        """
        copied = self._open[partition].snapshot(folder)
        return copied._replace(in_files=copied.in_files or bool(self._to_erase.get(partition)))

    def erase_later(self, partition: int, beginning: bytes) -> None:
        """Rows of all tables under keys that begin so, deleted by now, are to leave the disk: see `erase`."""
        self._to_erase.setdefault(partition, set()).add(beginning)

    def erase(self, partition: int) -> int:
        """Erase what was asked for and is deleted; how many ranges of keys. In a thread. Raises `DataDirError`."""
        store = self._open.get(partition)
        return 0 if store is None else store.erase(self.now() - SETTLED_MS)


class DiskRows:
    """A table's rows in the stores of `WindowStores`."""

    def __init__(self, stores: WindowStores, prefix: bytes) -> None:
        self._stores, self.prefix = stores, prefix

    def get(self, partition: int, key: bytes) -> bytes | None:
        store = self._stores.store(partition)
        return None if store is None else store.get(self.prefix + key)

    def scan(self, partition: int, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        store, letters = self._stores.store(partition), len(self.prefix)
        if store is not None:
            for key, value in store.scan(self.prefix + prefix):
                yield key[letters:], value

    def write(self, partition: int, rows: Iterable[tuple[bytes, bytes | None]]) -> None:
        store, prefix = self._stores.store(partition), self.prefix
        if store is not None:
            for key, value in rows:
                store.put(prefix + key, value)

    def restore(self, partition: int, rows: Sequence[tuple[bytes, bytes | None]]) -> None:
        """Another worker deleted these rows, or this one before a kill: only the tombstones say so.

        The erasure is noted in the same batch, so it survives a kill.
        """
        store = self._stores.store(partition)
        if store is not None and any(
            value is None and store.get(self.prefix + key) is not None for key, value in rows
        ):
            store.erase_later(self.prefix, self._stores.now())
        self.write(partition, rows)

    def partitions(self) -> Iterable[int]:
        return self._stores.partitions()

    def own(self, partitions: frozenset[int]) -> None:
        """Stores are opened and closed for all tables together."""

    def is_fitted(self, partition: int) -> bool:
        store = self._stores.store(partition)
        return store is not None and store.fitted
