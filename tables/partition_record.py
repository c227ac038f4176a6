"""By how many partitions the users of a data directory are shared out, as its first worker noted it there.

With another number, users would be sent to other shards than those that hold their memories, and a broker that is
empty or away cannot say so.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from schemas.errors import DataDirError, SettingsError
from tables.paths import write_whole

NAME: Final = "partitions"


def recorded_partitions(data_dir: Path) -> int | None:
    """None where nothing is noted: no worker has begun there, or an earlier version. Raises `DataDirError`."""
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
    """Note it, where it is not noted. Raises `DataDirError`."""
    if recorded_partitions(data_dir) == partitions:
        return
    try:
        write_whole(data_dir / NAME, b"%d\n" % partitions)
    except OSError as exc:
        raise DataDirError(data_dir, exc.strerror or type(exc).__name__) from exc


def other_partitions(data_dir: Path, partitions: int) -> tuple[str, str] | None:
    """What is wrong with this number, and what to do about it; None where nothing is. Raises `DataDirError`."""
    recorded = recorded_partitions(data_dir)
    if recorded in (None, partitions):
        return None
    what = f"kafka.partitions is {partitions}, and the users of {data_dir} are shared out by {recorded}"
    return what, f"set kafka.partitions to {recorded}, or choose another data directory with --data or data_dir"


def require_partitions(data_dir: Path, partitions: int) -> None:
    """Raises `SettingsError` where another number is noted, `DataDirError`."""
    if wrong := other_partitions(data_dir, partitions):
        raise SettingsError([": ".join(wrong)])
