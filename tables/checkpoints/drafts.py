"""Drafts: folders in which a checkpoint is restored before it is moved to its place. A process locks its drafts.

The draft of a killed worker has users' messages, and no forget command would remove them. So a worker removes each
draft that no process has locked.
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
    """A new, locked folder below `folder`, in which a partition is restored. Raises OSError.

    `files` is the path for the restored files; the caller creates it.
    """

    def __init__(self, folder: Path, partition: int) -> None:
        while True:
            self._path = folder / f"{partition}-{os.getpid()}-{next(_numbers)}"
            self._path.mkdir(parents=True)
            try:
                self._lock = _opened(self._path)
                break
            except FileNotFoundError:  # another process has removed the draft, as it had no lock yet
                continue
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        self.files = self._path / "files"

    def drop(self) -> None:
        """Remove the draft with its contents. Call it once."""
        shutil.rmtree(self._path, ignore_errors=True)
        os.close(self._lock)


def drop_left(folder: Path, of: str = "*") -> None:
    """Remove all drafts that no process has locked, of the partition `of`, or of all partitions."""
    for path in folder.glob(f"{of}-*"):
        try:
            lock = _opened(path)
        except OSError:  # another process has just removed the draft
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
