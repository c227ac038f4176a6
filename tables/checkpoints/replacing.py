"""Replacing a shard on the disk by a restored one, under the owner's lock, so no other process can open it.

In a shared data directory another worker may have opened or created the shard after it was inspected: a worker that
was paused does not know that it lost its partition.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import shutil
from pathlib import Path
from typing import Final

import duckdb

from schemas.errors import ShardLocked
from tables.database.database import connect
from tables.database.shard_info import read_info
from tables.memories.catalog.catalog_file import owner_lock
from tables.paths import synced
from tables.reached import CATALOG

log = logging.getLogger(__name__)

#: The suffix of a shard that is set aside, after its partition.
FORMER: Final = ".former"
#: The position of a shard that another process has open: higher than any real one, so a checkpoint does not win.
IN_USE: Final = 1 << 62


def position_of(folder: Path) -> int | None:
    """The position of the shard in a folder; None if there is none, `IN_USE` if it cannot be opened."""
    if not (folder / CATALOG).exists():
        return None
    try:
        with contextlib.closing(connect(folder / CATALOG, read_only=True)) as db:
            return read_info(db).position or 0
    except duckdb.Error as exc:
        log.debug("%s: %s", folder, exc)
        return IN_USE


def take_up(aside: Path, place: Path) -> None:
    """Move back a shard that a killed process had set aside; if its place is taken, remove it."""
    if aside.exists():
        if not place.exists():
            aside.rename(place)
        shutil.rmtree(aside, ignore_errors=True)


def replace_shard(partition: int, restored: Path, place: Path, aside: Path, *, position: int | None) -> None:
    """Move a restored folder to `place`; an existing shard is moved to `aside` for a moment, then removed.

    Raises `ShardLocked`, and changes nothing, if another process has the shard open or it is not at `position` (None:
    there was no shard) any more; OSError.
    """
    place.parent.mkdir(parents=True, exist_ok=True)
    with owner_lock(place, partition) if place.exists() else contextlib.nullcontext():
        if position_of(place) != position:
            raise ShardLocked(partition, f"another worker has used {place} meanwhile")
        if place.exists():
            place.rename(aside)
        try:
            restored.rename(place)
        except OSError as exc:
            if exc.errno in (errno.ENOTEMPTY, errno.EEXIST):
                raise ShardLocked(partition, f"another worker has just created {place}") from exc
            raise
    synced(place.parent)
    shutil.rmtree(aside, ignore_errors=True)
