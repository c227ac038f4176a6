"""Folders in which a checkpoint is restored before it is moved to its place. Each is locked by its process.

A killed worker leaves users' words in its draft, where no forget command reaches them. So a worker removes each draft
that it finds unlocked.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import shutil
from pathlib import Path
from typing import Final

_LOCK: Final = "lock"
_numbers = itertools.count()


class Draft:
    """A folder below `folder` for restoring a partition. The caller creates `files` in it.

    Raises OSError.
    """

    def __init__(self, folder: Path, partition: int) -> None:
        while True:
            self._path = folder / f"{partition}-{os.getpid()}-{next(_numbers)}"
            self._path.mkdir(parents=True)
            try:
                self._lock = _opened(self._path)
                break
            except FileNotFoundError:  # another process removed it as left over
                continue
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self.files = self._path / "files"

    def drop(self) -> None:
        """Remove the draft with its contents. Call it once."""
        shutil.rmtree(self._path, ignore_errors=True)
        os.close(self._lock)


def drop_left(folder: Path, of: str = "*") -> None:
    """Remove drafts that no process has locked, of all partitions or of one."""
    for path in folder.glob(f"{of}-*"):
        try:
            lock = _opened(path)
        except OSError:  # another process has just removed it
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(path, ignore_errors=True)
        except BlockingIOError:
            continue
        finally:
            os.close(lock)


def _opened(path: Path) -> int:
    return os.open(path / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
