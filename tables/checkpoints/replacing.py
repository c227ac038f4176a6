"""Replaces a shard on the disk by a restored one, under the owner's lock, so that no other process can open it.

In a shared data directory, another worker may have opened or created the shard since its position was read. The cause
may be a worker that was paused and does not know that it has lost its partition.
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

#: A shard is moved to the folder `<partition>.former` before it is replaced.
FORMER: Final = ".former"
#: The assumed position of a shard that cannot be read. It is above all real positions, so no checkpoint counts as
#: newer than the shard.
IN_USE: Final = 1 << 62


def position_of(folder: Path) -> int | None:
    """Return the offset in the log up to which the shard in a folder has the events; None if there is no shard.

    Return `IN_USE` if the shard cannot be opened, usually because another process has it open.
    """
    if not (folder / CATALOG).exists():
        return None
    try:
        with contextlib.closing(connect(folder / CATALOG, read_only=True)) as db:
            return read_info(db).position or 0
    except duckdb.Error as exc:
        log.debug("%s: %s", folder, exc)
        return IN_USE


def take_up(aside: Path, place: Path) -> None:
    """Move a shard that a killed process has left at `aside` back to `place`.

    If there is already a shard at `place`, the shard at `aside` is removed.
    """
    if aside.exists():
        if not place.exists():
            aside.rename(place)
        shutil.rmtree(aside, ignore_errors=True)


def replace_shard(partition: int, restored: Path, place: Path, aside: Path, *, position: int | None) -> None:
    """Move a restored folder to `place`. An existing shard is first moved to `aside`, and removed at the end.

    `position` is the expected position of the existing shard; None if no shard is expected. Raises `ShardLocked` if
    another process has the shard open, or if the shard has another position. In both cases, nothing has changed. Also
    raises `ShardLocked` if another process creates a shard at `place` during the move, and OSError.
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
