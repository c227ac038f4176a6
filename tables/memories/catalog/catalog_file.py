"""The file of a catalog: locked, connected to, and rewritten so that no deleted byte stays in its pages."""

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
from tables.paths import quoted, synced
from tables.reached import CATALOG

#: What a database that rests has at hand: bytes. The rest lies in the system's cache, which anybody may use.
_AT_REST: Final = 16 << 20
#: A log of so many bytes is written into the file before: until then its changes are in memory.
_LARGE_LOG: Final = 32 << 20
#: DuckDB writes its log into the file when it is so large.
_CHECKPOINT_AT: Final = "128MB"
#: Larger than any log: it does not write it.
_NEVER: Final = "1000TB"


class CatalogFile:
    """A DuckDB file that one process at a time has, between a rewriting's closing and opening, too.

    DuckDB locks the file that it has open. A lock of our own, `catalog.lock` beside it, covers the moment in which
    another file takes its place. DuckDB works with `memory` bytes. Raises `ShardLocked` and `DataDirError`.
    """

    def __init__(self, path: Path, partition: int, memory: int = ALONE) -> None:
        self.path, self._partition, self._memory = path, partition, memory
        self._fresh = path.with_name("catalog.fresh")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as exc:
            raise DataDirError(path.parent, exc.strerror or str(exc)) from exc
        self._lock = _taken_lock(path, partition)
        try:
            self.db = self._connected()
            self._drop_leftovers()
        except BaseException:
            os.close(self._lock)
            raise

    def _connected(self) -> duckdb.DuckDBPyConnection:
        try:
            db = connect(self.path, memory=self._memory, checkpoint_threshold=_CHECKPOINT_AT)
        except duckdb.IOException as exc:
            if "could not set lock" in str(exc).lower():
                raise _locked(self.path, self._partition) from exc
            raise DataDirError(self.path, str(exc).splitlines()[0]) from exc
        ((self._threshold,),) = db.execute("SELECT current_setting('checkpoint_threshold')").fetchall()
        db.execute("SET arrow_lossless_conversion = true")  # ids come as sixteen bytes, not as texts
        db.execute("SET python_scan_all_frames = true")  # a table is found by a variable's name from behind a wrapper
        return db

    def _drop_leftovers(self) -> None:
        """What a crash left: a copy that was not finished, and pages that were put on the disk for want of memory."""
        self._drop_copy()
        shutil.rmtree(self.path.with_name(f"{self.path.name}.tmp"), ignore_errors=True)

    def _drop_copy(self) -> None:
        for path in (self._fresh, _log_of(self._fresh)):
            path.unlink(missing_ok=True)

    def limit_memory(self, memory: int) -> None:
        self._memory = memory
        limit_memory(self.db, memory)

    def rest(self) -> None:
        """Keep only often used pages in memory: release changes, and the pages that a scan has read.

        A checkpoint releases the changes. None is made while `hold` puts them off, because the file is being copied.
        """
        try:
            if self._log_size() >= _LARGE_LOG and self._checkpoints_by_itself():
                self.db.execute("CHECKPOINT")
            limit_memory(self.db, _AT_REST)
        except duckdb.OutOfMemoryException:
            pass  # what can leave has left
        finally:
            limit_memory(self.db, self._memory)

    def _log_size(self) -> int:
        with contextlib.suppress(FileNotFoundError):
            return _log_of(self.path).stat().st_size
        return 0

    def _checkpoints_by_itself(self) -> bool:
        ((threshold,),) = self.db.execute("SELECT current_setting('checkpoint_threshold')").fetchall()
        return bool(threshold == self._threshold)

    def hold(self) -> None:
        """Write all into the main file, and from then on into the log alone. Raises `duckdb.Error`."""
        self.db.execute("CHECKPOINT")
        self.db.execute(f"SET checkpoint_threshold = '{_NEVER}'")

    def release(self) -> None:
        """Write the log into the main file again, when it is large. Raises `duckdb.Error`."""
        self.db.execute(f"SET checkpoint_threshold = '{_CHECKPOINT_AT}'")

    def rewrite(self) -> None:
        """Put a copy of all rows in the file's place, and connect to it: `db` is another connection.

        A crash at any point leaves the old file whole or the new one. Raises `DataDirError` where the copy cannot be
        made; `db` is then one to the old file.
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
        """Let go of it; again does nothing."""
        self.db.close()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


@contextlib.contextmanager
def owner_lock(folder: Path, partition: int) -> Iterator[None]:
    """Keep other processes from opening the catalog in a folder, which this one does not have open.

    Raises `ShardLocked` where one has it open, `DataDirError`.
    """
    lock = _taken_lock(folder / CATALOG, partition)
    try:
        yield
    finally:
        os.close(lock)


def _taken_lock(path: Path, partition: int) -> int:
    """The descriptor of the lock beside a catalog; it lasts until that is closed."""
    try:
        lock = os.open(path.with_name("catalog.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as exc:
        raise DataDirError(path.parent, exc.strerror or str(exc)) from exc
    try:
        fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError) as exc:
        os.close(lock)
        raise _locked(path, partition) from exc
    return lock


def _locked(path: Path, partition: int) -> ShardLocked:
    return ShardLocked(partition, f"another process has {path} open; stop it, or wait for it to hand over")


def _log_of(path: Path) -> Path:
    """DuckDB's write-ahead log of a file."""
    return path.with_name(f"{path.name}.wal")
