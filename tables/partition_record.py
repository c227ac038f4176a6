"""Partition record: the number of partitions of a data directory, noted there by its first worker.

With another number, users would be sent to other shards than those that have their memories, and a broker that is
empty or away cannot tell.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from schemas.errors import DataDirError, SettingsError
from tables.paths import write_whole

NAME: Final = "partitions"


def recorded_partitions(data_dir: Path) -> int | None:
    """Return the noted number; None if no worker, or an earlier version, has begun there. Raises `DataDirError`."""
    path = data_dir / NAME
    try:
        text = path.read_text(encoding="ascii").strip()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, UnicodeDecodeError) as exc:
        raise DataDirError(path, getattr(exc, "strerror", None) or "it is not a number") from exc
    if not text.isdecimal():
        raise DataDirError(path, "it is not a number")
    return int(text)


def record_partitions(data_dir: Path, partitions: int) -> None:
    """Note the number, unless it is noted already. Raises `DataDirError`."""
    if recorded_partitions(data_dir) == partitions:
        return
    try:
        write_whole(data_dir / NAME, b"%d\n" % partitions)
    except OSError as exc:
        raise DataDirError(data_dir, exc.strerror or type(exc).__name__) from exc


def other_partitions(data_dir: Path, partitions: int) -> tuple[str, str] | None:
    """Return what is wrong with this number and how to correct it; None if it is right. Raises `DataDirError`."""
    recorded = recorded_partitions(data_dir)
    if recorded in (None, partitions):
        return None
    what = f"kafka.partitions is {partitions}, but the users of {data_dir} are distributed over {recorded} partitions"
    return what, f"set kafka.partitions to {recorded}, or choose another data directory with --data or data_dir"


def require_partitions(data_dir: Path, partitions: int) -> None:
    """Raises `SettingsError` if another number is noted; `DataDirError`."""
    if wrong := other_partitions(data_dir, partitions):
        raise SettingsError([": ".join(wrong)])
