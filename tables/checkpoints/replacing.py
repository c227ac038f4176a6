"""A restored shard takes the place of what is on the disk, which no other process can open meanwhile.

On a shared data directory another worker may have opened, or begun, the shard since it was looked at: a worker that
was paused does not know that its partition has gone.
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

#: How what lies aside is named, behind its partition.
FORMER: Final = ".former"
#: The position of what another process has open: it is as near as any.
IN_USE: Final = 1 << 62


def position_of(folder: Path) -> int | None:
    """The position of the shard that is in a folder; None where none is, `IN_USE` where it cannot be opened."""
    if not (folder / CATALOG).exists():
        return None
    try:
        with contextlib.closing(connect(folder / CATALOG, read_only=True)) as db:
            return read_info(db).position or 0
    except duckdb.Error as exc:
        log.debug("%s: %s", folder, exc)
        return IN_USE


def take_up(aside: Path, place: Path) -> None:
    """What was set aside by a process that was killed comes back, or goes where there is something in its place."""
    if aside.exists():
        if not place.exists():
            aside.rename(place)
        shutil.rmtree(aside, ignore_errors=True)


def replace_shard(partition: int, restored: Path, place: Path, aside: Path, *, position: int | None) -> None:
    """Put a restored folder in the place of what is there, if anything is; `aside` is where that lies for a moment.

    Raises `ShardLocked`, and changes nothing, where another process has the shard open, or where it has not the
    `position` (None: there was none) that it was replaced for; OSError.
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
                raise ShardLocked(partition, f"another worker has just begun {place}") from exc
            raise
    synced(place.parent)
    shutil.rmtree(aside, ignore_errors=True)
