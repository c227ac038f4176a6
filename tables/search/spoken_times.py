"""Spoken times: the windows of time that the texts of a shard's memories speak of ("on Friday", 上周三), stored.

To read a text for times takes up to milliseconds, so neither a commit nor a search does it for many: `fill` reads
new memories a little later and stores the windows beside their rows. They are resolved in the time zone of daily
summaries. For a question in another zone, and for a memory that is not read yet, the text is read on demand, with the
same result.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from datetime import tzinfo
from pathlib import Path
from typing import Final, Protocol, TypeVar

import orjson

from schemas.memories import Memory
from tables.analysts.copy import SpokenTime, StoredTimes
from tables.rocksdb import StoreDamaged
from tables.runs import Places
from tables.search.standing import Standing
from tables.search.text_store import FOLDER, TextStore
from tables.time_expressions.windows import RULES, Window, windows_of

log = logging.getLogger(__name__)

T = TypeVar("T")

#: The number of characters of a text, from its beginning, that are read for times.
READ_CHARS: Final = 1_000
#: Seconds of reading after which a call of `fill` ends, because searches wait for it.
FILL_SECONDS: Final = 0.02


def spoken_in(memory: Memory, zone: tzinfo) -> list[Window]:
    """Return the first four windows that a memory's text speaks of, relative to its creation time in a time zone."""
    return windows_of(memory.text[:READ_CHARS], memory.created_at, zone)


class Whole(Protocol):
    def __call__(self, read: Callable[[], T], /) -> T: ...


class SpokenTimes:
    """The stored windows of one shard. Not thread-safe. `memories` returns those at some places.

    All memories with numbers below `read` have been read. `whole` returns the result of a function. If the store is
    damaged, it deletes all rows, calls `start_over`, and calls the function again.
    """

    def __init__(
        self,
        store: TextStore,
        standing: Standing,
        zone: tzinfo,
        memories: Callable[[Places], list[Memory]],
        whole: Whole,
    ) -> None:
        self._store, self._standing, self._zone = store, standing, zone
        self._memories, self._whole = memories, whole
        self.rules = rules_in(zone)
        self.read, self._changes = 0, 0
        if store.stamp is not None and store.stamp.times_rules == self.rules:
            self.read = store.stamp.times_read
        else:
            self._clear()

    def _clear(self) -> None:
        """Delete windows of other rules. A worker of an older version may have left some of what it forgot."""
        try:
            self._store.clear_times()
        except StoreDamaged as exc:
            log.warning("%s: its rows are filled again from the catalog", exc)
            self._store.start_over()

    def start_over(self) -> None:
        """Read all texts again, because the store has lost its windows."""
        self.read, self._changes = 0, self._changes + 1

    def of(self, places: Places, zone: tzinfo) -> list[list[Window]]:
        """Return the windows of the memories at these places, in the order of `places`, in a user's time zone."""
        if str(zone) != str(self._zone):
            return [spoken_in(memory, zone) for memory in self._memories(places)]
        seqs = self._standing.seqs(places)
        stored = self._whole(lambda: self._store.times(seqs))
        known = seqs < self.read
        unread = iter(self._memories(places[~known]))
        return [
            _windows(value) if is_read else spoken_in(next(unread), zone)
            for is_read, value in zip(known.tolist(), stored, strict=True)
        ]

    def stored(self) -> StoredTimes:
        """Return what is stored, for the analysts' copy."""
        return StoredTimes(self._changes, lambda: self._whole(lambda: _spoken(self._store, self.read)))

    def fill(self, most: int, write: Callable[[], None]) -> int:
        """Read some of the memories that are not read yet, and return their number. `write` writes the store."""
        before = self.read
        memories = self._memories(self._standing.places(self._standing.next_from(before, most)))
        if not memories or self.read != before:  # in the second case, the store was damaged
            return len(memories)
        found = dict[int, list[Window]]()
        until = time.monotonic() + FILL_SECONDS
        for memory in memories:
            found[memory.seq] = spoken_in(memory, self._zone)
            if time.monotonic() > until:
                break
        for seq, windows in found.items():
            if windows:
                self._store.put_times(seq, orjson.dumps([tuple(one) for one in windows]))
            else:
                self._store.delete_times(seq)  # other rules may have found some
        self.read = max(found) + 1
        try:
            write()
        except BaseException:
            self.read = before
            raise
        self._changes += 1
        return len(found)


def rules_in(zone: tzinfo) -> str:
    """Return a name for what windows depend on, apart from the text. Windows of other rules are not used."""
    return f"{RULES} {zone}"


def windows_at_rest(shard: Path, generation: int | None, zone: tzinfo) -> list[SpokenTime]:
    """Return the windows in a time zone that are stored of a shard that no process has open, given its folder.

    `generation` is that of the search rows that fit its catalog. Without a store that fits, there are no windows.
    Raises `DataDirError`.
    """
    if not (shard / FOLDER).is_dir():  # RocksDB would create it
        return []
    try:
        store = TextStore(shard / FOLDER, read_only=True)
    except StoreDamaged as exc:
        log.warning("%s: %s: a worker will read the times of its memories again", shard / FOLDER, exc)
        return []
    try:
        stamp = store.stamp
        if stamp is None or (stamp.generation, stamp.times_rules) != (generation, rules_in(zone)):
            return []
        return _spoken(store, stamp.times_read)
    finally:
        store.close()


def _spoken(store: TextStore, read: int) -> list[SpokenTime]:
    return [SpokenTime(seq, *window) for seq, value in store.all_times() if seq < read for window in _windows(value)]


def _windows(value: bytes | None) -> list[Window]:
    return [] if value is None else [Window(*one) for one in orjson.loads(value)]
