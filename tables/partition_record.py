"""The partition record: a file in a data directory with its number of partitions. The first worker writes it.

If a later worker used another number of partitions, users would be assigned to shards that do not have their
memories. The broker cannot always tell the right number, because it may be empty or unreachable.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from schemas.errors import DataDirError, SettingsError
from tables.paths import write_whole

NAME: Final = "partitions"


def recorded_partitions(data_dir: Path) -> int | None:
    """Return the recorded number of partitions; None if there is no record. Raises `DataDirError`.

    There is no record if no worker has used the data directory yet, or only workers of an older version.
    """
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
    """Write the number of partitions to the record, unless the record already has it. Raises `DataDirError`."""
    if recorded_partitions(data_dir) == partitions:
        return
    try:
        write_whole(data_dir / NAME, b"%d\n" % partitions)
    except OSError as exc:
        raise DataDirError(data_dir, exc.strerror or type(exc).__name__) from exc


def other_partitions(data_dir: Path, partitions: int) -> tuple[str, str] | None:
    """Compare a number of partitions with the recorded one. If they differ, return the problem and its correction.

    Return None if the numbers are equal or there is no record. Raises `DataDirError`.
    """
    recorded = recorded_partitions(data_dir)
    if recorded in (None, partitions):
        return None
    what = f"kafka.partitions is {partitions}, but the users of {data_dir} are distributed over {recorded} partitions"
    return what, f"set kafka.partitions to {recorded}, or choose another data directory with --data or data_dir"


def require_partitions(data_dir: Path, partitions: int) -> None:
    """Raise `SettingsError` if the recorded number of partitions is not `partitions`. Also raises `DataDirError`."""
    if wrong := other_partitions(data_dir, partitions):
        raise SettingsError([": ".join(wrong)])
