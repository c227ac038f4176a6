"""The reached offset: a file beside a shard, which has applied all events of `long-term` before this offset.

The file can be read without opening the shard. A worker that joins its consumer group reports the offsets of the
shards on its disk before it opens them. The offset may be out of date. This does no harm, because it only decides
which worker gets a partition, never from which offset the log is read.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final

NAME: Final = "reached"
#: A folder without this file has no shard.
CATALOG: Final = "catalog.duckdb"


def note_reached(folder: Path, offset: int) -> None:
    """Record that the shard in the folder has applied all events of `long-term` before this offset."""
    draft = folder / f"{NAME}.draft"
    with suppress(OSError):  # the partition's folder was removed, or the disk is full: other code reports these
        draft.write_text(str(offset), encoding="ascii")
        draft.replace(folder / NAME)


def reached(folders: Path) -> dict[int, int]:
    """Return, by partition, the recorded offset of each shard below `folders`; 0 if a shard has no record."""
    found = {}
    with suppress(OSError):  # there is no folder yet, or a folder is being removed
        for folder in folders.iterdir():
            if folder.name.isdecimal() and (folder / CATALOG).exists():
                found[int(folder.name)] = _offset(folder / NAME)
    return found


def _offset(path: Path) -> int:
    try:
        return max(0, int(path.read_text(encoding="ascii")))
    except (OSError, ValueError):
        return 0
