"""Files and folders: their names in SQL, whether they can be written to, and what stays after a power cut."""

from __future__ import annotations

import os
import uuid
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


def sync_data(file: int) -> None:
    """What was written to this open file is on the disk, with as much of its names and times as reading it takes."""
    getattr(os, "fdatasync", os.fsync)(file)


def write_whole(path: Path, content: bytes) -> None:
    """Put a file with this content in the file's place, now and after a power cut. Raises OSError.

    Several workers of one data directory may do so at once: each has a draft of its own, and the last one stays.
    """
    draft = path.with_name(f"{path.name}.{uuid.uuid4().hex}.new")
    try:
        with draft.open("xb") as file:
            file.write(content)
        synced(draft)
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    synced(path.parent)


def make_usable(folder: Path, mode: int = 0o777) -> None:
    """Make the folder with this mode, where it is not there. Raises `DataDirError` where nothing can be written.

    The umask takes rights from the mode, and folders above it that are made have those of the umask alone.
    """
    try:
        folder.mkdir(mode, parents=True, exist_ok=True)
    except OSError as exc:
        raise DataDirError(folder, exc.strerror or str(exc)) from exc
    if not os.access(folder, os.W_OK | os.X_OK):
        raise DataDirError(folder, "permission denied")
