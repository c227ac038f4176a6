"""Folders in which a checkpoint is restored, before it is moved to its place. Each is locked by its process.

A worker that is killed meanwhile leaves users' words in its draft, where no forget command reaches them. So a worker
removes each draft that it finds unlocked.
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
    """A folder below `folder` for what is restored of a partition; `files`, in it, is for the caller to make.

    Raises OSError.
    """

    def __init__(self, folder: Path, partition: int) -> None:
        while True:
            self._path = folder / f"{partition}-{os.getpid()}-{next(_numbers)}"
            self._path.mkdir(parents=True)
            try:
                self._lock = _opened(self._path)
                break
            except FileNotFoundError:  # another process took it for one that is left
                continue
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self.files = self._path / "files"

    def drop(self) -> None:
        """Remove it with what is in it. To be called once."""
        shutil.rmtree(self._path, ignore_errors=True)
        os.close(self._lock)


def drop_left(folder: Path, of: str = "*") -> None:
    """Remove drafts that no process holds, of all partitions or of one."""
    for path in folder.glob(f"{of}-*"):
        try:
            lock = _opened(path)
        except OSError:  # it has just gone
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
