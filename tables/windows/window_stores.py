"""Window rows on a worker's disk: one store for each partition, with the rows of all tables side by side.

A batch has rows that the changelogs took together, and the place of each changelog at that moment. So a worker that
is assigned a partition reads only the rest of its changelogs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from schemas.times import now_ms
from schemas.topic_specs import SLEPT_TOO_LONG_MS
from tables.windows.partition_store import Copied, Memory, PartitionStore, Place, State, holds_rows, remove_rows

#: By then, a command's deletions in all tables are written.
SETTLED_MS: Final = 30_000


class Begun(NamedTuple):
    """A partition's state at a drain (`at`, epoch ms): whether its tables were consistent, and what to erase."""

    at: int
    fitted: bool
    erase: frozenset[bytes]


class WindowStores:
    """The stores of all open partitions. `topic_ids` are the changelogs': rows are valid for that topic only.

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
        #: When each partition was opened, or the reading of its changelogs began (epoch ms).
        self._since: dict[int, int] = {}
        #: Key prefixes, by partition.
        self._to_erase: dict[int, set[bytes]] = {}

    def table(self, changelog: str, prefix: bytes) -> DiskRows:
        """Return the rows of one changelog, under keys with this one-letter prefix."""
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
        """Remove the partition's store from the open ones, and return it; the caller closes it, in any thread."""
        self._to_erase.pop(partition, None)  # its command was not committed, and asks again
        return self._open.pop(partition)

    def former(self) -> frozenset[int]:
        """Return the partitions that have rows on the disk and are not open."""
        if not self.folder.is_dir():
            return frozenset()
        there = {int(path.name) for path in self.folder.iterdir() if path.name.isdecimal() and holds_rows(path)}
        return frozenset(there - self._open.keys())

    def drop(self, partition: int) -> None:
        """Remove the files of a partition that is not open. Call it on the thread that opens stores.

        Raises `WindowsLocked` if another worker has it open; `DataDirError`.
        """
        if partition not in self._open:
            remove_rows(self.folder / str(partition))

    def resume(self, changelog: str, partition: int) -> Place | None:
        """Return the place from which to read the changelog; None if it must be read from the start.

        In that case its kept rows are deleted.
        """
        store, now = self._open[partition], self.now()
        self._since[partition] = now
        place, identity = store.state.places.get(changelog), self.topic_ids.get(changelog)
        if place is not None and identity == place.topic_id and now - SLEPT_TOO_LONG_MS < place.at <= now:
            return place
        self.clear(changelog, partition)
        return None

    def clear(self, changelog: str, partition: int) -> None:
        """Delete all kept rows of the changelog."""
        store = self._open[partition]
        store.discard()
        store.clear(self._tables[changelog].prefix)
        store.fitted = False
        store.commit(State(places={name: place for name, place in store.state.places.items() if name != changelog}))

    def begin(self) -> Mapping[int, Begun]:
        """Return the state of each open partition. Call it in the same step as the drain."""
        now, none = self.now(), frozenset[bytes]()
        erase = {partition: frozenset(due) for partition, due in self._to_erase.items()}
        return {p: Begun(now, store.fitted, erase.get(p, none)) for p, store in self._open.items()}

    def commit(
        self, partition: int, ends: Mapping[str, tuple[int | None, int, int]], begun: Mapping[int, Begun]
    ) -> None:
        """Write what was put since the last commit. Raises `DataDirError`.

        `ends` has for each changelog the offset up to which it is included, None if unknown; its number of rows; and
        its records' offset (`Place`).
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
        """Note that the changelog's rows before `offset` were read, and no later ones. Raises `DataDirError`."""
        store = self._open[partition]
        places = dict(store.state.places)
        before = places.get(changelog)
        if identity := self.topic_ids.get(changelog):
            at = self._since[partition] if before is None else before.at
            places[changelog] = Place(identity, offset, rows, at, read)
        store.commit(State(fitted=False, places=places))

    def fitted(self, partition: int) -> None:
        """Note that the tables are consistent in memory; the changes for that are in the next drain."""
        if (store := self._open.get(partition)) is not None:
            store.fitted = True

    def changes(self, partition: int) -> int | None:
        """Return a number that changes with the partition's rows and with each erasure; None if it is not open."""
        store = self._open.get(partition)
        return None if store is None else store.changes

    def snapshot(self, partition: int, folder: Path) -> Copied:
        """Copy a partition's rows into a new folder, and return the places of its changelogs.

        The files are links to those of the store, and never change. This may run in a thread of its own. Raises
        `KeyError` if the partition is not open; `DataDirError`.
        """
        copied = self._open[partition].snapshot(folder)
        return copied._replace(in_files=copied.in_files or bool(self._to_erase.get(partition)))

    def erase_later(self, partition: int, beginning: bytes) -> None:
        """Note that rows of all tables under this key prefix, deleted by now, must leave the disk: see `erase`."""
        self._to_erase.setdefault(partition, set()).add(beginning)

    def erase(self, partition: int) -> int:
        """Erase the deleted rows that were noted; how many key ranges. Call it in a thread. Raises `DataDirError`."""
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
        """Write the rows, and note that deleted ones must leave the disk.

        Another worker deleted them, or this one before a kill: only the tombstones say so. The note is in the same
        batch, so it survives a kill.
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
        """Do nothing: stores are opened and closed for all tables together."""

    def is_fitted(self, partition: int) -> bool:
        store = self._stores.store(partition)
        return store is not None and store.fitted
