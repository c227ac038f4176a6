"""Files and folders: quoting in SQL, checks for write access, and syncing to survive a power cut."""

from __future__ import annotations

import os
import uuid
from pathlib import Path

from schemas.errors import DataDirError


def quoted(path: Path | str) -> str:
    """Return the path with each single quote doubled, for use inside a quoted SQL literal."""
    return str(path).replace("'", "''")


def synced(path: Path) -> None:
    """Sync a file's bytes, or a folder's list of files, to the disk, so that they survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_data(file: int) -> None:
    """Sync an open file's bytes to the disk, without metadata that is not needed to read them, such as times."""
    getattr(os, "fdatasync", os.fsync)(file)


def write_whole(path: Path, content: bytes) -> None:
    """Write `content` to the file `path`, atomically and so that it survives a power cut. Raises OSError.

    Several workers that share a data directory may write the same file at the same time. Each worker writes a draft
    with a unique name. The draft that is renamed last becomes the file.
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


def shard_folders(data_dir: Path) -> dict[int, Path]:
    """Return the folders of the shards in a data directory, by ascending partition; none if it has no shards yet.

    Raises `DataDirError` if they cannot be listed.
    """
    try:
        folders = {int(path.name): path for path in (data_dir / "shards").iterdir() if path.name.isdecimal()}
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as exc:
        raise DataDirError(data_dir, exc.strerror or str(exc)) from exc
    return dict(sorted(folders.items()))


def make_usable(folder: Path, mode: int = 0o777) -> None:
    """Make the folder with this mode, if it is missing. Raises `DataDirError` if it cannot be written to.

    The umask restricts the mode. Missing parent folders are made, too; their mode depends only on the umask.
    """
    try:
        folder.mkdir(mode, parents=True, exist_ok=True)
    except OSError as exc:
        raise DataDirError(folder, exc.strerror or str(exc)) from exc
    if not os.access(folder, os.W_OK | os.X_OK):
        raise DataDirError(folder, "permission denied")
