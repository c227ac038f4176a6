"""A partition's window rows on disk: one RocksDB without a log of its own, because the changelogs are its log.

Rows are written in batches, each with the state that it leads to. A kill loses whole batches, the newest first. The
state that is left has each changelog's place, and the worker reads the rest from there.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import rocksdict

from schemas.errors import DataDirError, WindowsLocked
from tables.paths import make_usable, synced
from tables.windows.kept_rows import PORTION

log = logging.getLogger(__name__)

#: Format of keys and values. A store of another format is recreated from the changelogs.
FORMAT: Final = 1
#: No table's keys have this prefix.
STATE_KEY: Final = b"\x00state"
#: Prefix of pending erasures; a time and the key prefix with deleted rows that must leave the disk follow it.
ERASE: Final = b"\x00erase"
#: Number of erasures done. It has a key of its own because erasing has a thread of its own.
REWRITTEN: Final = b"\x00rewritten"
#: When the whole store was last rewritten (epoch ms), and its number of changes then.
WHOLE: Final = b"\x00whole"
#: Interval between rewrites of the whole store: keys name users and sessions, and a deleted key stays in a file until
#: then.
WHOLE_MS: Final = 86_400_000
#: How RocksDB's messages begin when it reads other data than it wrote.
DAMAGE: Final = ("Corruption", "Invalid argument", "Not implemented")
#: Marker file: RocksDB found the store damaged, so it is not used again.
DAMAGED: Final = "DAMAGED"
#: RocksDB holds a lock on this file while the store is open.
LOCK: Final = "LOCK"
#: RocksDB's file that leads to all others: without it there is no store.
CURRENT: Final = "CURRENT"

#: All in bytes. All partitions of a worker share these two, so that many cost no more than few.
CACHE_BYTES: Final = 16 << 20
WRITE_BYTES: Final = 16 << 20
#: One partition's rows that are not in a file yet.
MEMTABLE_BYTES: Final = 4 << 20
BLOCK_BYTES: Final = 8 << 10
OPEN_FILES: Final = 48


class Place(msgspec.Struct, frozen=True):
    """A changelog's place: the rows include all its records before `offset`.

    `rows` counts the rows read or written since it was read from its start; at `at` (epoch ms) no record lay after
    `offset`. `read` is the offset before which the topic's records are in the rows, if the changelog says so.
    """

    topic_id: str
    offset: int
    rows: int
    at: int
    read: int = 0


class State(msgspec.Struct):
    """The store's state after a batch. `fitted`: the tables are consistent, except for records after their places.

    `changes` grows with each batch that has rows. It starts at a random number, so that no two stores have the same
    one.
    """

    format: int = FORMAT
    fitted: bool = False
    places: dict[str, Place] = {}
    changes: int = 0


class Copied(NamedTuple):
    """What a copy of a store includes at least. `in_files`: it may have deleted rows that must leave the disk."""

    places: dict[str, Place]
    changes: int
    in_files: bool


_decode_state: Final = msgspec.json.Decoder(State).decode


class Memory:
    """Block cache and write buffers that all stores of a process share."""

    def __init__(self) -> None:
        self.cache = rocksdict.Cache(CACHE_BYTES)
        self.buffers = rocksdict.WriteBufferManager(WRITE_BYTES, False)

    def options(self) -> Any:
        blocks = rocksdict.BlockBasedOptions()
        blocks.set_block_cache(self.cache)
        blocks.set_block_size(BLOCK_BYTES)
        blocks.set_bloom_filter(10, False)
        blocks.set_cache_index_and_filter_blocks(True)
        blocks.set_pin_l0_filter_and_index_blocks_in_cache(False)
        options = rocksdict.Options(raw_mode=True)
        options.create_if_missing(True)
        options.set_block_based_table_factory(blocks)
        options.set_write_buffer_manager(self.buffers)
        options.set_write_buffer_size(MEMTABLE_BYTES)
        options.set_max_write_buffer_number(2)
        options.set_arena_block_size(64 << 10)
        options.set_max_open_files(OPEN_FILES)
        options.set_compression_type(rocksdict.DBCompressionType.lz4())
        options.set_max_background_jobs(2)
        options.set_keep_log_file_num(1)
        options.set_max_log_file_size(1 << 20)
        options.set_stats_dump_period_sec(0)
        options.set_skip_stats_update_on_db_open(True)
        return options


def _unlogged() -> Any:
    options = rocksdict.WriteOptions()
    options.disable_wal = True  # type: ignore[method-assign,assignment]  # a property, typed as a method
    return options


class _DamagedRows(Exception):
    """RocksDB read other data than it wrote."""


class PartitionStore:
    """The rows of one partition. One thread uses it; `snapshot` and `erase` may run in another one.

    Raises `WindowsLocked` if another process, or another worker of this one, has it open; `DataDirError` if the disk
    fails. A damaged store is removed: the changelogs have all of its rows.
    """

    def __init__(self, folder: Path, memory: Memory) -> None:
        self.folder, self._memory = folder, memory
        self._unlogged, self._closing, self._closed = _unlogged(), threading.Lock(), False
        if (folder / DAMAGED).exists():
            self._start_over("it was found damaged")
        self._open()
        try:
            self.state = self._kept_state()
            self._rewritten = int(self.get(REWRITTEN) or 0)
        except DataDirError:  # otherwise this process could not open it again
            self._db.close()
            raise
        if self.state.format != FORMAT:
            self._db.close()
            self._start_over(f"it has format {self.state.format}, but this version has {FORMAT}")
            self._open()
            self.state, self._rewritten = State(), 0
        if not self.state.changes:
            self.state.changes = 1 + int.from_bytes(os.urandom(6))
        #: Whether the tables are consistent in memory, except for rows still to be restored.
        self.fitted = self.state.fitted
        self._batch = rocksdict.WriteBatch(raw_mode=True)

    def _open(self) -> None:
        make_usable(self.folder)
        try:
            self._db = self._opened()
        except _DamagedRows as exc:
            self._start_over(str(exc))
            try:
                self._db = self._opened()
            except _DamagedRows as again:
                raise DataDirError(self.folder, str(again)) from again

    def _opened(self) -> rocksdict.Rdict:
        """Raises `_DamagedRows`, `WindowsLocked`, `DataDirError`."""
        try:
            return rocksdict.Rdict(str(self.folder), self._memory.options())
        except Exception as exc:  # rocksdict has no narrower class
            said = _line(exc)
            if "/LOCK" in said:
                raise WindowsLocked(self.folder) from exc
            if said.startswith(DAMAGE) or "No such file" in said:
                raise _DamagedRows(said) from exc
            raise DataDirError(self.folder, said) from exc

    def _start_over(self, why: str) -> None:
        log.warning("%s: %s: the store is removed, and its changelogs are read from the start", self.folder, why)
        remove_rows(self.folder)

    def _kept_state(self) -> State:
        raw = self.get(STATE_KEY)
        if raw is None:
            return State()
        try:
            return _decode_state(raw)
        except msgspec.DecodeError:  # written by a newer version
            return State(format=-1)

    def get(self, key: bytes) -> bytes | None:
        with self._translated():
            found: bytes | None = self._db.get(key)
            return found

    def scan(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield rows a portion at a time: an open iterator would keep the store from being closed."""
        key = prefix
        while portion := self._portion(key, prefix):
            yield from portion
            if len(portion) < PORTION:
                return
            key = portion[-1][0] + b"\x00"

    def _portion(self, key: bytes, prefix: bytes) -> list[tuple[bytes, bytes]]:
        found: list[tuple[bytes, bytes]] = []
        with self._translated():
            for found_key, value in self._db.items(from_key=key):
                assert isinstance(found_key, bytes), "the store is in raw mode"
                if not found_key.startswith(prefix):
                    break
                found.append((found_key, value))
                if len(found) == PORTION:
                    break
        return found

    def put(self, key: bytes, value: bytes | None) -> None:
        """Add a row to the batch that the next `commit` writes."""
        if value is None:
            self._batch.delete(key)
        else:
            self._batch.put(key, value)

    def erase_later(self, prefix: bytes, now_ms: int) -> None:
        """Note with the next `commit` that deleted rows under this key prefix must leave the disk."""
        self._batch.put(b"%b%020d" % (ERASE, now_ms) + prefix, b"")

    def clear(self, prefix: bytes) -> None:
        """Delete all rows under this key prefix, with the next `commit`."""
        self._batch.delete_range(prefix, _after(prefix))

    @property
    def changes(self) -> int:
        """A number that changes with each batch with rows and each erasure; reopening keeps it."""
        return self.state.changes + self._rewritten

    def commit(self, state: State) -> None:
        """Write the batch and the state that it leads to, atomically: after a kill all of it is there, or nothing."""
        batch, self._batch = self._batch, rocksdict.WriteBatch(raw_mode=True)
        state.changes = self.state.changes + (len(batch) > 0)
        batch.put(STATE_KEY, msgspec.json.encode(state))
        with self._translated():
            self._db.write(batch, self._unlogged)
        self.state = state

    def discard(self) -> None:
        """Drop what was put since the last `commit`."""
        self._batch.clear()

    def snapshot(self, folder: Path) -> Copied:
        """Copy the store into a new folder, by links. Raises `DataDirError`, also if the store has been closed."""
        with self._closing, self._translated():
            if self._closed:
                raise DataDirError(self.folder, "it has been closed")
            state, changes = self.state, self.changes
            self._db.flush()
            rocksdict.Checkpoint(self._db).create_checkpoint(str(folder))
            # Read last: rows in the copy may have been deleted, and marked for erasure, since it was begun.
            in_files = next(self.scan(ERASE), None) is not None
            return Copied(state.places, changes, in_files)

    def erase(self, before_ms: int) -> int:
        """Rewrite the files of erasures noted before `before_ms` (epoch ms) without deleted rows; return the number.

        Once a day this rewrites all files, so that no key of a deleted row stays. Raises `DataDirError`: the erasures
        then stay pending.
        """
        with self._closing:
            if self._closed:
                return 0
            due = [key for key, _ in self.scan(ERASE) if int(key[len(ERASE) :][:20]) < before_ms]
            changes, whole = self.state.changes, self._is_whole_due(before_ms)
            if not due and not whole:
                return 0
            done = rocksdict.WriteBatch(raw_mode=True)
            for key in due:
                done.delete(key)
            done.put(REWRITTEN, b"%d" % (self._rewritten + 1))
            with self._translated():
                self._db.flush()
                if whole:
                    done.put(WHOLE, b"%d %d" % (before_ms, changes))
                    self._rewrite(None, None)
                else:
                    for prefix in {key[len(ERASE) + 20 :] for key in due}:
                        self._rewrite(prefix, _after(prefix))
                self._db.write(done, self._unlogged)
                self._rewritten += 1
                self._db.flush()
                self._rewrite(ERASE, _after(ERASE))  # the erasures' keys name users as well
            return len(due)

    def _is_whole_due(self, now_ms: int) -> bool:
        """True if the last whole rewrite is a day ago and rows have changed since."""
        at, changes = map(int, (self.get(WHOLE) or b"0 0").split())
        return now_ms - at >= WHOLE_MS and self.state.changes != changes

    def _rewrite(self, begin: bytes | None, end: bytes | None) -> None:
        thorough = rocksdict.CompactOptions()
        thorough.set_bottommost_level_compaction(rocksdict.BottommostLevelCompaction.force())
        self._db.compact_range(begin, end, thorough)

    def close(self) -> None:
        """Close the store in any case. Raises `DataDirError` if rows in memory did not reach the disk."""
        with self._closing:
            self._closed = True
            try:
                with self._translated():
                    self._db.flush()
            finally:
                self._db.close()

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (DataDirError, GeneratorExit):
            raise
        except Exception as exc:
            said = _line(exc)
            if said.startswith("Corruption"):
                with contextlib.suppress(OSError):
                    (self.folder / DAMAGED).touch()
                said = f"{said}: start the worker again: the store is then recreated from its changelogs"
            elif "No space left" in said:
                said = f"{os.strerror(28)}"
            raise DataDirError(self.folder, said) from exc


def holds_rows(folder: Path) -> bool:
    """True if a store was made there, and not removed since."""
    return any(path.name != LOCK for path in folder.iterdir()) if folder.is_dir() else False


def remove_rows(folder: Path) -> None:
    """Remove a store that this process does not have open. The lock file stays, and is locked meanwhile.

    Raises `WindowsLocked` if another process has it open; `DataDirError`.
    """
    with _locked(folder):
        for path in folder.iterdir():
            if path.name != LOCK:
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def place_rows(restored: Path, folder: Path) -> None:
    """Move a store's files into a folder that has none, and where this process has no store open.

    A move that a kill interrupts leaves no store. Raises `WindowsLocked` if another process has a store open there,
    or has made one; `DataDirError`.
    """
    make_usable(folder)
    with _locked(folder):
        if holds_rows(folder):
            raise WindowsLocked(folder)
        files = [path for path in restored.iterdir() if path.name != LOCK]
        for path in sorted(files, key=lambda path: path.name == CURRENT):  # RocksDB opens a store by this file
            path.rename(folder / path.name)
        synced(folder)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a store that this process does not have open. Raises `WindowsLocked`, `DataDirError`."""
    try:
        with (folder / LOCK).open("ab") as lock:
            try:
                fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except (BlockingIOError, PermissionError) as exc:
                raise WindowsLocked(folder) from exc
            yield
    except OSError as exc:
        raise DataDirError(folder, exc.strerror or str(exc)) from exc


def _after(prefix: bytes) -> bytes:
    """Return the first key after all keys with this prefix."""
    return prefix[:-1] + bytes([prefix[-1] + 1])


def _line(exc: Exception) -> str:
    return str(exc).splitlines()[0] if str(exc) else type(exc).__name__
