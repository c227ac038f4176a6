"""A partition's window rows on disk: a RocksDB without a write-ahead log, because the changelogs have the same rows.

Rows are written in batches. Each batch also writes the store's new `State`. If the process is killed, the newest
batches may be lost, but never a part of a batch. The state has the offset up to which the rows include each
changelog. The worker then reads the changelog from that offset on.
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
from tables.rocksdb import DAMAGE, LOCK, Memory, StoreDamaged, after, line, rewrite
from tables.windows.kept_rows import PORTION

log = logging.getLogger(__name__)

#: The version of the format of keys and values. A store with another version is recreated from the changelogs.
FORMAT: Final = 1
#: Key of the stored `State`. No table's keys begin with it.
STATE_KEY: Final = b"\x00state"
#: Key prefix of pending erasure requests. The request's time (epoch ms) and the deleted rows' key prefix follow it.
ERASE: Final = b"\x00erase"
#: Key of the number of times that `erase` has rewritten files. It is not in `State`: another thread writes it.
REWRITTEN: Final = b"\x00rewritten"
#: Key of the time when the whole store was last rewritten (epoch ms), and of its number of changes at that time.
WHOLE: Final = b"\x00whole"
#: Milliseconds between rewrites of the whole store. Keys name users and sessions, and a deleted key may stay in a
#: file until such a rewrite.
WHOLE_MS: Final = 86_400_000
#: Name of a marker file. It says that RocksDB found the store damaged; the next opening recreates the store.
DAMAGED: Final = "DAMAGED"
#: The file by which RocksDB finds all other files. Without it, RocksDB sees no store in the folder.
CURRENT: Final = "CURRENT"


class Place(msgspec.Struct, frozen=True):
    """A place in a changelog: the stored rows include all of the changelog's records before `offset`.

    `rows` is the number of rows read or written since the changelog was last read from its start. At the time `at`
    (epoch ms), the changelog still had each tombstone after `offset` that deletes a stored row; Kafka removes
    tombstones later. `read` is an offset of the source topic: the rows include all changes by earlier records of that
    topic. It is 0 if the offset is unknown.
    """

    topic_id: str
    offset: int
    rows: int
    at: int
    read: int = 0


class State(msgspec.Struct):
    """The state of a store after a batch. `places` has the place in each changelog, by the changelog's name.

    `fitted` is true if the tables, each up to its place, are consistent with each other. `changes` grows with each
    batch that has rows. It starts at a random number, so that two stores have different numbers.
    """

    format: int = FORMAT
    fitted: bool = False
    places: dict[str, Place] = {}
    changes: int = 0


class Copied(NamedTuple):
    """A store's state when its copy began. `in_files` is true if the copy may have deleted rows not yet erased."""

    places: dict[str, Place]
    changes: int
    in_files: bool


_decode_state: Final = msgspec.json.Decoder(State).decode


def _unlogged() -> Any:
    options = rocksdict.WriteOptions()
    options.disable_wal = True  # type: ignore[method-assign,assignment]  # a property, typed as a method
    return options


class PartitionStore:
    """The window rows of one partition. All methods but `snapshot`, `erase` and `close` must run in one thread.

    Raises `WindowsLocked` if another process, or another worker in this process, has the store open, and
    `DataDirError` if the disk fails. A damaged store is recreated, because the changelogs have all of its rows.
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
        except DataDirError:  # if the store stayed open, it could not be opened again
            self._db.close()
            raise
        if self.state.format != FORMAT:
            self._db.close()
            self._start_over(f"it has format {self.state.format}, but this version has {FORMAT}")
            self._open()
            self.state, self._rewritten = State(), 0
        if not self.state.changes:
            self.state.changes = 1 + int.from_bytes(os.urandom(6))
        #: Whether the tables are consistent with each other, apart from rows that the present recovery restores.
        self.fitted = self.state.fitted
        self._batch = rocksdict.WriteBatch(raw_mode=True)

    def _open(self) -> None:
        make_usable(self.folder)
        try:
            self._db = self._opened()
        except StoreDamaged as exc:
            self._start_over(str(exc))
            try:
                self._db = self._opened()
            except StoreDamaged as again:
                raise DataDirError(self.folder, str(again)) from again

    def _opened(self) -> rocksdict.Rdict:
        """Open RocksDB. Raises `StoreDamaged`, `WindowsLocked`, `DataDirError`."""
        try:
            return rocksdict.Rdict(str(self.folder), self._memory.options())
        except Exception as exc:  # rocksdict has no narrower class of exceptions
            said = line(exc)
            if "/LOCK" in said:
                raise WindowsLocked(self.folder) from exc
            if said.startswith(DAMAGE) or "No such file" in said:
                raise StoreDamaged(said) from exc
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
        """Yield rows by key prefix, read in portions, because an open iterator of RocksDB would prevent `close`."""
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
        """Request, with the next `commit`, that deleted rows with this key prefix be erased from the disk."""
        self._batch.put(b"%b%020d" % (ERASE, now_ms) + prefix, b"")

    def clear(self, prefix: bytes) -> None:
        """Delete all rows with this key prefix, with the next `commit`."""
        self._batch.delete_range(prefix, after(prefix))

    @property
    def changes(self) -> int:
        """A number that grows with each batch of rows and each `erase` that rewrites files. It is kept on disk."""
        return self.state.changes + self._rewritten

    def commit(self, state: State) -> None:
        """Write the batch and the new state atomically. If the process is killed, both are stored or neither."""
        batch, self._batch = self._batch, rocksdict.WriteBatch(raw_mode=True)
        state.changes = self.state.changes + (len(batch) > 0)
        batch.put(STATE_KEY, msgspec.json.encode(state))
        with self._translated():
            self._db.write(batch, self._unlogged)
        self.state = state

    def discard(self) -> None:
        """Drop all changes since the last `commit`."""
        self._batch.clear()

    def snapshot(self, folder: Path) -> Copied:
        """Copy the store into a new folder, by hard links. Raises `DataDirError`, also if the store is closed."""
        with self._closing, self._translated():
            if self._closed:
                raise DataDirError(self.folder, "it has been closed")
            state, changes = self.state, self.changes
            self._db.flush()
            rocksdict.Checkpoint(self._db).create_checkpoint(str(folder))
            # Read this last: rows in the copy may have been deleted, and marked for erasure, since the copy began.
            in_files = next(self.scan(ERASE), None) is not None
            return Copied(state.places, changes, in_files)

    def erase(self, before_ms: int) -> int:
        """Rewrite files without the rows whose erasure was requested before `before_ms` (epoch ms).

        Once a day, all files are rewritten, so that no key of a deleted row stays. Return the number of requests that
        were carried out. If it raises `DataDirError`, the requests stay pending.
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
                    rewrite(self._db)
                else:
                    for prefix in {key[len(ERASE) + 20 :] for key in due}:
                        rewrite(self._db, prefix, after(prefix))
                self._db.write(done, self._unlogged)
                self._rewritten += 1
                self._db.flush()
                rewrite(self._db, ERASE, after(ERASE))  # erase the deleted requests too: their keys name users
            return len(due)

    def _is_whole_due(self, now_ms: int) -> bool:
        """True if the whole store was last rewritten at least a day ago, and rows have changed since."""
        at, changes = map(int, (self.get(WHOLE) or b"0 0").split())
        return now_ms - at >= WHOLE_MS and self.state.changes != changes

    def close(self) -> None:
        """Write rows in memory to the disk, and close the store, even if the write raises `DataDirError`."""
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
            said = line(exc)
            if said.startswith("Corruption"):
                with contextlib.suppress(OSError):
                    (self.folder / DAMAGED).touch()
                said = f"{said}: start the worker again: the store is then recreated from its changelogs"
            raise DataDirError(self.folder, said) from exc


def holds_rows(folder: Path) -> bool:
    """True if the folder has files of a store. The lock file alone does not count."""
    return any(path.name != LOCK for path in folder.iterdir()) if folder.is_dir() else False


def remove_rows(folder: Path) -> None:
    """Remove a store that this process does not have open. The lock file stays, and is locked during the removal.

    Raises `WindowsLocked` if another process has the store open, and `DataDirError` if the disk fails.
    """
    with _locked(folder):
        for path in folder.iterdir():
            if path.name != LOCK:
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def place_rows(restored: Path, folder: Path) -> None:
    """Move a restored store into a folder that has no store, and in which this process has no store open.

    If the process is killed during the move, RocksDB sees no store in the folder. Raises `WindowsLocked` if the
    folder already has a store, or another process has one open in it, and `DataDirError` if the disk fails.
    """
    make_usable(folder)
    with _locked(folder):
        if holds_rows(folder):
            raise WindowsLocked(folder)
        files = [path for path in restored.iterdir() if path.name != LOCK]
        for path in sorted(files, key=lambda path: path.name == CURRENT):  # `CURRENT` is moved last
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
