"""Window rows on a worker's disk: one store for each partition, with the rows of all tables side by side.

A batch has the rows that one flush wrote to the changelogs and, for each changelog, the place up to which the store
then includes it. So a worker that is assigned a partition reads each changelog only from that place on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from schemas.times import now_ms
from schemas.topic_specs import SLEPT_TOO_LONG_MS
from tables.rocksdb import Memory
from tables.windows.partition_store import Copied, PartitionStore, Place, State, holds_rows, remove_rows

#: The minimum number of milliseconds between a request for erasure and the erasure. By then, all deletions of the
#: forget command are assumed to be written, in all tables.
SETTLED_MS: Final = 30_000


class Begun(NamedTuple):
    """The state of a partition just before a drain, at the time `at` (epoch ms).

    `fitted` is true if the partition's tables were consistent with each other. `erase` has the key prefixes of rows
    that were deleted and must be erased from the disk.
    """

    at: int
    fitted: bool
    erase: frozenset[bytes]


class WindowStores:
    """The stores of all open partitions. `topic_ids` has the topic id of each changelog, by the changelog's name.

    Stored rows of a changelog are used only if the topic still has the id with which the rows were stored.

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
        #: The time of the last `resume` of each partition, when the reading of its changelogs began (epoch ms).
        self._since: dict[int, int] = {}
        #: By partition, the key prefixes of deleted rows whose erasure was requested. No store has the request yet.
        self._to_erase: dict[int, set[bytes]] = {}

    def table(self, changelog: str, prefix: bytes) -> DiskRows:
        """Return the table of one changelog. In the stores, its keys begin with the one-letter `prefix`."""
        table = self._tables[changelog] = DiskRows(self, prefix)
        return table

    def partitions(self) -> list[int]:
        return sorted(self._open)

    def store(self, partition: int) -> PartitionStore | None:
        return self._open.get(partition)

    def open(self, partition: int) -> None:
        """Open the partition's store. Raises `WindowsLocked`, `DataDirError`."""
        self._open[partition] = PartitionStore(self.folder / str(partition), self._memory)

    def leave(self, partition: int) -> PartitionStore:
        """Remove the partition's store from the open stores, and return it. The caller closes it, in any thread."""
        self._to_erase.pop(partition, None)  # the forget command was not committed, so it will be read again
        return self._open.pop(partition)

    def former(self) -> frozenset[int]:
        """Return the partitions that have a store on the disk but are not open."""
        if not self.folder.is_dir():
            return frozenset()
        there = {int(path.name) for path in self.folder.iterdir() if path.name.isdecimal() and holds_rows(path)}
        return frozenset(there - self._open.keys())

    def drop(self, partition: int) -> None:
        """Remove the files of a partition that is not open. Call it on the thread that opens stores.

        Raises `WindowsLocked` if another worker has the store open, and `DataDirError` if the disk fails.
        """
        if partition not in self._open:
            remove_rows(self.folder / str(partition))

    def resume(self, changelog: str, partition: int) -> Place | None:
        """Return the place from which to read the changelog; None if it must be read from the start.

        Before it returns None, it deletes all stored rows of this changelog.
        """
        store, now = self._open[partition], self.now()
        self._since[partition] = now
        place, identity = store.state.places.get(changelog), self.topic_ids.get(changelog)
        if place is not None and identity == place.topic_id and now - SLEPT_TOO_LONG_MS < place.at <= now:
            return place
        self.clear(changelog, partition)
        return None

    def clear(self, changelog: str, partition: int) -> None:
        """Delete all stored rows of the changelog in this partition, and commit the deletion."""
        store = self._open[partition]
        store.discard()
        store.clear(self._tables[changelog].prefix)
        store.fitted = False
        store.commit(State(places={name: place for name, place in store.state.places.items() if name != changelog}))

    def begin(self) -> Mapping[int, Begun]:
        """Return the state of each open partition. Call it just before the drain, without an `await` in between."""
        now, none = self.now(), frozenset[bytes]()
        erase = {partition: frozenset(due) for partition, due in self._to_erase.items()}
        return {p: Begun(now, store.fitted, erase.get(p, none)) for p, store in self._open.items()}

    def commit(
        self, partition: int, ends: Mapping[str, tuple[int | None, int, int]], begun: Mapping[int, Begun]
    ) -> None:
        """Write all changes since the last commit. Raises `DataDirError`.

        `ends` has, by changelog, the values `offset`, `rows` and `read` of the new `Place`. If the offset is None, it
        is unknown, and the former place stays. `begun` is the result of `begin` before the drain.
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
        """Commit restored rows: the changelog was read up to, not including, `offset`. Raises `DataDirError`."""
        store = self._open[partition]
        places = dict(store.state.places)
        before = places.get(changelog)
        if identity := self.topic_ids.get(changelog):
            at = self._since[partition] if before is None else before.at
            places[changelog] = Place(identity, offset, rows, at, read)
        store.commit(State(fitted=False, places=places))

    def fitted(self, partition: int) -> None:
        """Record that the partition's tables in memory are now consistent with each other.

        The changes that made them consistent are written by the next flush.
        """
        if (store := self._open.get(partition)) is not None:
            store.fitted = True

    def changes(self, partition: int) -> int | None:
        """Return a number that grows with each batch of the partition's rows and each `erase` that rewrites files.

        Return None if the store is not open.
        """
        store = self._open.get(partition)
        return None if store is None else store.changes

    def snapshot(self, partition: int, folder: Path) -> Copied:
        """Copy a partition's rows into a new folder, and return the places of its changelogs.

        The files with rows are hard links to the files of the store. No file of the copy ever changes. Any thread may
        call this. Raises `KeyError` if the partition is not open, and `DataDirError` if the disk fails.
        """
        copied = self._open[partition].snapshot(folder)
        return copied._replace(in_files=copied.in_files or bool(self._to_erase.get(partition)))

    def erase_later(self, partition: int, beginning: bytes) -> None:
        """Request that deleted rows with this key prefix be erased from the disk, in all tables.

        The next flush stores the request; `erase` carries it out.
        """
        self._to_erase.setdefault(partition, set()).add(beginning)

    def erase(self, partition: int) -> int:
        """Carry out the stored requests of `erase_later` that are older than `SETTLED_MS`. Return their number.

        It takes long, so call it in a thread of its own. Raises `DataDirError`.
        """
        store = self._open.get(partition)
        return 0 if store is None else store.erase(self.now() - SETTLED_MS)


class DiskRows:
    """The kept rows of one table, on disk in the stores of all open partitions."""

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
        """Write rows of the changelog. If they delete stored rows, request that these be erased from the disk.

        The rows were deleted by another worker, or by this worker before it was killed. So no forget command requests
        their erasure now. The request is in the same batch as the rows, so it is not lost if this worker is killed.
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
        """Do nothing: `WindowStores` opens and closes the stores, for all tables together."""

    def is_fitted(self, partition: int) -> bool:
        store = self._stores.store(partition)
        return store is not None and store.fitted
