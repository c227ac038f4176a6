"""A partition's window rows on the disk: one RocksDB, without a log of its own, because the changelogs are its log.

What is written comes in batches, each with the state that it leads to: a kill takes whole batches, the newest ones
first, and what is left says up to where its changelogs are in it. The tail of the log brings the rest.
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

#: Of the keys and of what is under them. With another one, a store is recreated from the changelogs.
FORMAT: Final = 1
#: No table's keys begin so.
STATE_KEY: Final = b"\x00state"
#: Keys that end with a moment and with the beginning of keys whose deleted rows are to leave the disk.
ERASE: Final = b"\x00erase"
#: How often deleted rows have left the disk; a key of its own, since erasing has a thread of its own.
REWRITTEN: Final = b"\x00rewritten"
#: When all of the store was rewritten (epoch ms), and the number of its changes then.
WHOLE: Final = b"\x00whole"
#: So often all of it is rewritten: keys name users and sessions, and a deleted one stays in a file until then.
WHOLE_MS: Final = 86_400_000
#: How RocksDB begins to say that what it finds is not what it wrote.
DAMAGE: Final = ("Corruption", "Invalid argument", "Not implemented")
#: A file beside RocksDB's: what it found damaged is not used again.
DAMAGED: Final = "DAMAGED"
#: RocksDB holds a lock on this file while the store is open.
LOCK: Final = "LOCK"
#: What names the file that says which others there are: without it there is no store.
CURRENT: Final = "CURRENT"

#: All in bytes. Shared by all partitions of a worker, so that many cost no more than few.
CACHE_BYTES: Final = 16 << 20
WRITE_BYTES: Final = 16 << 20
#: Of one partition: what is not yet in a file of its own.
MEMTABLE_BYTES: Final = 4 << 20
BLOCK_BYTES: Final = 8 << 10
OPEN_FILES: Final = 48


class Place(msgspec.Struct, frozen=True):
    """Up to where a changelog is in the rows: all before `offset` is.

    `rows` were read or written since it was read from its start; `at` (epoch ms) is when nothing lay behind that.
    `read` is the offset before which the topic's records are in the rows, where the changelog says so.
    """

    topic_id: str
    offset: int
    rows: int
    at: int
    read: int = 0


class State(msgspec.Struct):
    """What a batch leads to. `fitted`: the tables fit each other, but for what is behind their places.

    `changes` is higher after each batch with rows. It begins anywhere, so that no two stores have the same one.
    """

    format: int = FORMAT
    fitted: bool = False
    places: dict[str, Place] = {}
    changes: int = 0


class Copied(NamedTuple):
    """What a copy of a store has at least. `in_files`: deleted rows that are to leave the disk may lie in it."""

    places: dict[str, Place]
    changes: int
    in_files: bool


_decode_state: Final = msgspec.json.Decoder(State).decode


class Memory:
    """What all stores of a process share."""

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
    """What RocksDB finds is not what it wrote."""


class PartitionStore:
    """Used by one thread, but for `snapshot` and `erase`, which may have one of their own.

    Raises `WindowsLocked` where another process, or another worker of this one, has it open; `DataDirError` where the
    disk does not do what it is asked for. What is damaged is removed: the changelogs have it all.
    """

    def __init__(self, folder: Path, memory: Memory) -> None:
        self.folder, self._memory = folder, memory
        self._unlogged, self._closing, self._closed = _unlogged(), threading.Lock(), False
        if (folder / DAMAGED).exists():
            self._begin_anew("it was found damaged")
        self._open()
        try:
            self.state = self._kept_state()
            self._rewritten = int(self.get(REWRITTEN) or 0)
        except DataDirError:  # or this process could not open it again
            self._db.close()
            raise
        if self.state.format != FORMAT:
            self._db.close()
            self._begin_anew(f"it has format {self.state.format}, this version {FORMAT}")
            self._open()
            self.state, self._rewritten = State(), 0
        if not self.state.changes:
            self.state.changes = 1 + int.from_bytes(os.urandom(6))
        #: Whether the tables fit each other in memory, but for what is still to be restored.
        self.fitted = self.state.fitted
        self._batch = rocksdict.WriteBatch(raw_mode=True)

    def _open(self) -> None:
        make_usable(self.folder)
        try:
            self._db = self._opened()
        except _DamagedRows as exc:
            self._begin_anew(str(exc))
            try:
                self._db = self._opened()
            except _DamagedRows as again:
                raise DataDirError(self.folder, str(again)) from again

    def _opened(self) -> rocksdict.Rdict:
        """Raises `_DamagedRows`, `WindowsLocked`, `DataDirError`."""
        try:
            return rocksdict.Rdict(str(self.folder), self._memory.options())
        except Exception as exc:  # rocksdict knows no other
            said = _line(exc)
            if "/LOCK" in said:
                raise WindowsLocked(self.folder) from exc
            if said.startswith(DAMAGE) or "No such file" in said:
                raise _DamagedRows(said) from exc
            raise DataDirError(self.folder, said) from exc

    def _begin_anew(self, why: str) -> None:
        log.warning("%s: %s: it is removed, and its changelogs are read from the start", self.folder, why)
        remove_rows(self.folder)

    def _kept_state(self) -> State:
        raw = self.get(STATE_KEY)
        if raw is None:
            return State()
        try:
            return _decode_state(raw)
        except msgspec.DecodeError:  # of a version to come
            return State(format=-1)

    def get(self, key: bytes) -> bytes | None:
        with self._translated():
            found: bytes | None = self._db.get(key)
            return found

    def scan(self, prefix: bytes) -> Iterator[tuple[bytes, bytes]]:
        """A portion at a time: an iterator that is left open would keep the store from being closed."""
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
        """To be written by the next `commit`."""
        if value is None:
            self._batch.delete(key)
        else:
            self._batch.put(key, value)

    def erase_later(self, prefix: bytes, now_ms: int) -> None:
        """What is deleted under keys that begin so is to leave the disk: noted with the next `commit`."""
        self._batch.put(b"%b%020d" % (ERASE, now_ms) + prefix, b"")

    def clear(self, prefix: bytes) -> None:
        """Delete all under keys that begin so, with the next `commit`."""
        self._batch.delete_range(prefix, _after(prefix))

    @property
    def changes(self) -> int:
        """Another number after each batch with rows, and after each erasure; the same after an opening."""
        return self.state.changes + self._rewritten

    def commit(self, state: State) -> None:
        """Write what was put, and what it leads to, in one batch: all of it is there after a kill, or nothing."""
        batch, self._batch = self._batch, rocksdict.WriteBatch(raw_mode=True)
        state.changes = self.state.changes + (len(batch) > 0)
        batch.put(STATE_KEY, msgspec.json.encode(state))
        with self._translated():
            self._db.write(batch, self._unlogged)
        self.state = state

    def discard(self) -> None:
        """What was put and not written is not written."""
        self._batch.clear()

    def snapshot(self, folder: Path) -> Copied:
        """A copy in a new folder, by links. Raises `DataDirError`, also where the store has been closed."""
        with self._closing, self._translated():
            if self._closed:
                raise DataDirError(self.folder, "it has been closed")
            state, changes = self.state, self.changes
            self._db.flush()
            rocksdict.Checkpoint(self._db).create_checkpoint(str(folder))
            # Asked last: rows that are in the copy may have been deleted, and are to be erased, since it was begun.
            in_files = next(self.scan(ERASE), None) is not None
            return Copied(state.places, changes, in_files)

    def erase(self, before_ms: int) -> int:
        """Rewrite the files that have rows under such keys without what is deleted; how many ranges those are.

        Of what was noted before that moment (epoch ms). Once a day it is all of them, so that no key stays of what
        was deleted. Raises `DataDirError`: what was to be erased still is.
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
                self._rewrite(ERASE, _after(ERASE))  # what was noted names users as well
            return len(due)

    def _is_whole_due(self, now_ms: int) -> bool:
        """Whether anything has changed since it was last rewritten as a whole, which is a day ago."""
        at, changes = map(int, (self.get(WHOLE) or b"0 0").split())
        return now_ms - at >= WHOLE_MS and self.state.changes != changes

    def _rewrite(self, begin: bytes | None, end: bytes | None) -> None:
        thorough = rocksdict.CompactOptions()
        thorough.set_bottommost_level_compaction(rocksdict.BottommostLevelCompaction.force())
        self._db.compact_range(begin, end, thorough)

    def close(self) -> None:
        """Raises `DataDirError` where what is in memory does not go to the disk; it is closed all the same."""
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
                said = f"{said}: start the worker again, and it is recreated from its changelogs"
            elif "No space left" in said:
                said = f"{os.strerror(28)}"
            raise DataDirError(self.folder, said) from exc


def holds_rows(folder: Path) -> bool:
    """Whether a store was made there, and not removed since."""
    return any(path.name != LOCK for path in folder.iterdir()) if folder.is_dir() else False


def remove_rows(folder: Path) -> None:
    """Remove a store that this process does not have open. The lock file stays, and is held meanwhile.

    Raises `WindowsLocked` where another process has it open, `DataDirError`.
    """
    with _locked(folder):
        for path in folder.iterdir():
            if path.name != LOCK:
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def place_rows(restored: Path, folder: Path) -> None:
    """Move a store's files into a folder where there is none, and this process has none open.

    What a kill leaves half moved is no store. Raises `WindowsLocked` where another process has one open there, or has
    made one; `DataDirError`.
    """
    make_usable(folder)
    with _locked(folder):
        if holds_rows(folder):
            raise WindowsLocked(folder)
        files = [path for path in restored.iterdir() if path.name != LOCK]
        for path in sorted(files, key=lambda path: path.name == CURRENT):  # RocksDB begins with that one
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
    """The first key behind all that begin so."""
    return prefix[:-1] + bytes([prefix[-1] + 1])


def _line(exc: Exception) -> str:
    return str(exc).splitlines()[0] if str(exc) else type(exc).__name__
