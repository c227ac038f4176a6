"""The DuckDB file of a catalog: its lock, its connection, and the rewrite that erases the bytes of deleted rows."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import duckdb

from schemas.errors import DataDirError, ShardLocked
from tables.database.database import ALONE, connect, limit_memory
from tables.database.shard_info import drop_info
from tables.memories.catalog.damage import damage_reported
from tables.paths import quoted, synced
from tables.reached import CATALOG
from tables.unused_memory import give_back

#: Bytes of pages that an idle database keeps in its memory. The operating system may still cache the other pages, but
#: it can drop them.
_AT_REST: Final = 16 << 20
#: If the write-ahead log has at least this many bytes, `rest` makes a checkpoint. Before a checkpoint, DuckDB keeps
#: the log's changes in memory.
_LARGE_LOG: Final = 32 << 20
#: The size of the heads of a DuckDB file.
_HEAD_BYTES: Final = 3 * 4096
#: The size of the write-ahead log at which DuckDB itself makes a checkpoint.
_CHECKPOINT_AT: Final = "128MB"
#: A threshold that no log reaches, so that DuckDB makes no checkpoint.
_NEVER: Final = "1000TB"


class CatalogFile:
    """A DuckDB file that only one process at a time can use, even while a rewrite closes and reopens it.

    DuckDB locks only the file that it has open. Our own lock, on the file `<folder>.lock` beside the folder of the
    catalog, also covers the moments in which a rewrite replaces the file, or a restore replaces the folder. `memory`
    is DuckDB's memory limit, in bytes. Raises `ShardLocked`, `DamagedShard` and `DataDirError`.
    """

    def __init__(self, path: Path, partition: int, memory: int = ALONE) -> None:
        self.path, self._partition, self._memory = path, partition, memory
        self._fresh = path.with_name("catalog.fresh")
        self._lock = _taken_lock(path.parent, partition)
        try:
            self._make_folder()
            self.db = self._connected()
            self._drop_leftovers()
        except BaseException:
            os.close(self._lock)
            raise

    def _make_folder(self) -> None:
        try:
            self.path.parent.mkdir(exist_ok=True)
            if is_unmade(self.path):
                self.path.unlink()
        except OSError as exc:
            raise DataDirError(self.path.parent, exc.strerror or str(exc)) from exc

    def _connected(self) -> duckdb.DuckDBPyConnection:
        try:
            with damage_reported(self.path.parent, self._partition):
                db = connect(self.path, memory=self._memory, checkpoint_threshold=_CHECKPOINT_AT)
        except duckdb.IOException as exc:
            if "could not set lock" in str(exc).lower():
                raise _locked(self.path, self._partition) from exc
            raise DataDirError(self.path, str(exc).splitlines()[0]) from exc
        ((self._threshold,),) = db.execute("SELECT current_setting('checkpoint_threshold')").fetchall()
        db.execute("SET arrow_lossless_conversion = true")  # ids come as sixteen bytes, not as texts
        db.execute("SET python_scan_all_frames = true")  # SQL finds Python variables of all callers
        return db

    def _drop_leftovers(self) -> None:
        """Delete the files that a crash left: an unfinished copy, and DuckDB's temporary pages."""
        self._drop_copy()
        shutil.rmtree(self.path.with_name(f"{self.path.name}.tmp"), ignore_errors=True)

    def _drop_copy(self) -> None:
        for path in (self._fresh, _log_of(self._fresh)):
            path.unlink(missing_ok=True)

    def limit_memory(self, memory: int) -> None:
        self._memory = memory
        limit_memory(self.db, memory)

    def rest(self) -> None:
        """Release DuckDB's memory: pages that a scan has read and, if the write-ahead log is large, its changes.

        A checkpoint releases the changes. During a `hold` no checkpoint is made, because the file is being copied.
        Then the process returns its free memory to the operating system.
        """
        try:
            if self._log_size() >= _LARGE_LOG and self._checkpoints_by_itself():
                self.db.execute("CHECKPOINT")
            limit_memory(self.db, _AT_REST)
        except duckdb.OutOfMemoryException:
            pass  # the limit cannot be reached, but all releasable pages are released
        finally:
            limit_memory(self.db, self._memory)
        give_back()

    def _log_size(self) -> int:
        with contextlib.suppress(FileNotFoundError):
            return _log_of(self.path).stat().st_size
        return 0

    def _checkpoints_by_itself(self) -> bool:
        ((threshold,),) = self.db.execute("SELECT current_setting('checkpoint_threshold')").fetchall()
        return bool(threshold == self._threshold)

    def hold(self) -> None:
        """Make a checkpoint, and then no further one until `release`, so that the main file does not change.

        Until `release`, changes go only into the write-ahead log. Raises `duckdb.Error`.
        """
        self.db.execute("CHECKPOINT")
        self.db.execute(f"SET checkpoint_threshold = '{_NEVER}'")

    def release(self) -> None:
        """Let DuckDB make checkpoints again. Raises `duckdb.Error`."""
        self.db.execute(f"SET checkpoint_threshold = '{_CHECKPOINT_AT}'")

    def rewrite(self) -> None:
        """Replace the file by a copy of all its rows. Then `db` is a new connection, to the new file.

        A crash at any point leaves the whole old file or the whole new one. Raises `DataDirError` if the copy cannot
        be made; `db` is then a new connection to the old file.
        """
        try:
            self.db.execute("CHECKPOINT")
            self.db.close()
            self._put_copy()
        except (duckdb.Error, OSError) as exc:
            with contextlib.suppress(OSError):
                self._drop_copy()
            raise DataDirError(self.path, f"it cannot be rewritten: {str(exc).splitlines()[0]}") from exc
        finally:
            with contextlib.suppress(duckdb.Error):
                self.db.close()
            self.db = self._connected()

    def _put_copy(self) -> None:
        wal = _log_of(self.path)
        if wal.exists() and wal.stat().st_size:
            raise OSError("its write-ahead log is not empty")
        with connect(memory=self._memory, temp_directory=f"{self.path}.tmp") as db:
            db.execute(f"ATTACH '{quoted(self.path)}' AS old (READ_ONLY)")
            db.execute(f"ATTACH '{quoted(self._fresh)}' AS fresh")
            db.execute("COPY FROM DATABASE old TO fresh")
            drop_info(db, "to_erase", schema="fresh")
            db.execute("CHECKPOINT fresh")
            db.execute("DETACH fresh")
        synced(self._fresh)
        self._fresh.replace(self.path)
        synced(self.path.parent)

    def close(self) -> None:
        """Release the file and its lock. A second call does nothing."""
        self.db.close()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def is_unmade(path: Path) -> bool:
    """Return True if the catalog is a part of an empty one, because a process was killed while it created the file.

    DuckDB writes the heads of a new file one by one. The file of vectors is created later.
    """
    return path.is_file() and path.stat().st_size < _HEAD_BYTES and not any(path.parent.glob("vectors-*.f32"))


@contextlib.contextmanager
def owner_lock(folder: Path, partition: int) -> Iterator[None]:
    """Keep other processes from opening the catalog in a folder. The folder need not exist.

    This process must not have the catalog open.
    Raises `ShardLocked` if another process has the catalog open, and `DataDirError` if the disk fails.
    """
    lock = _taken_lock(folder, partition)
    try:
        yield
    finally:
        os.close(lock)


def _taken_lock(folder: Path, partition: int) -> int:
    """Take the lock of the catalog in a folder, and return its file descriptor. Closing it releases the lock.

    The lock is beside the folder, and is never removed: a lock in the folder would be moved away with it.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder.with_name(f"{folder.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as exc:
        raise DataDirError(folder, exc.strerror or str(exc)) from exc
    try:
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError) as exc:
        os.close(lock)
        raise _locked(folder / CATALOG, partition) from exc
    return lock


def _locked(path: Path, partition: int) -> ShardLocked:
    return ShardLocked(partition, f"another process has {path} open; stop it, or wait for it to hand over")


def _log_of(path: Path) -> Path:
    """Return the path of DuckDB's write-ahead log of a database file."""
    return path.with_name(f"{path.name}.wal")
