"""Files and folders: their names in SQL, whether they can be written to, and what stays after a power cut."""

from __future__ import annotations

import os
from pathlib import Path

from schemas.errors import DataDirError


def quoted(path: Path | str) -> str:
    """What stands between the quotation marks of a SQL literal."""
    return str(path).replace("'", "''")


def synced(path: Path) -> None:
    """A file's bytes, or a folder's names, stay after a power cut from now on."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_usable(folder: Path) -> None:
    """Make the folder, where it is not there. Raises `DataDirError` where nothing can be written."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise DataDirError(folder, exc.strerror or str(exc)) from exc
    if not os.access(folder, os.W_OK | os.X_OK):
        raise DataDirError(folder, "permission denied")
