"""Replaces a shard on the disk by a restored one, under the owner's lock, so that no other process can open it.

In a shared data directory, another worker may have opened or created the shard since its position was read. The cause
may be a worker that was paused and does not know that it has lost its partition.

The shard is first moved to the folder `<partition>.former`. If the process is killed before the restored shard is in
place, the next start moves the former one back. So there is always one of the two, with all its files.
"""

from __future__ import annotations

import contextlib
import logging
import shutil
from pathlib import Path
from typing import Final

import duckdb

from schemas.errors import ShardLocked
from tables.database.database import connect
from tables.database.shard_info import read_info
from tables.memories.catalog.catalog_file import is_unmade, owner_lock
from tables.memories.catalog.damage import drop_kept, kept_beside
from tables.paths import synced
from tables.reached import CATALOG

log = logging.getLogger(__name__)

_FORMER: Final = ".former"
#: The assumed position of a shard that cannot be read. It is above all real positions, so no checkpoint counts as
#: newer than the shard. If the shard is damaged, its opening shows this.
UNREADABLE: Final = 1 << 62


def position_of(folder: Path) -> int | None:
    """Return the offset in the log up to which the shard in a folder has the events; None if there is no shard.

    Return 0 if a worker was killed while it created the shard. Return `UNREADABLE` if the shard cannot be opened,
    because another process has it open, or because it is damaged.
    """
    catalog = folder / CATALOG
    if not catalog.exists():
        return None
    if is_unmade(catalog):
        return 0
    try:
        with contextlib.closing(connect(catalog, read_only=True)) as db:
            return read_info(db).position or 0
    except duckdb.CatalogException:  # it has no tables yet
        return 0
    except duckdb.Error as exc:
        log.debug("%s: %s", folder, exc)
        return UNREADABLE


def take_up(partition: int, place: Path) -> None:
    """Move a shard that a killed process had set aside back to `place`, or remove it if there is a shard at `place`.

    If another process has the shard open, or is replacing it now, do nothing. Raises OSError and `DataDirError`.
    """
    if _former(place).exists():
        with contextlib.suppress(ShardLocked), owner_lock(place, partition):
            _take_up(place)


def take_up_all(shards: Path) -> None:
    """Call `take_up` for each partition in the folder `shards`."""
    for former in shards.glob(f"*{_FORMER}"):
        take_up(int(former.stem), former.with_suffix(""))


def replace_shard(
    partition: int, restored: Path, place: Path, *, position: int | None, keep_damaged: bool = False
) -> None:
    """Move a restored folder to `place`. An existing shard is replaced; if `keep_damaged`, its files are kept.

    `position` is the expected position of the existing shard; None if no shard is expected. Raises `ShardLocked` if
    another process has the shard open, or if the shard has another position, OSError and `DataDirError`. After an
    error, nothing has changed.
    """
    former = _former(place)
    with owner_lock(place, partition):
        if former.exists():
            _take_up(place)
        if position_of(place) != position:
            raise ShardLocked(partition, f"another worker has used {place} meanwhile")
        if place.exists():
            place.rename(former)
        try:
            restored.rename(place)
        except OSError:
            if former.exists():
                former.rename(place)
            raise
        synced(place.parent)
        if keep_damaged and former.exists():
            drop_kept(place)
            former.rename(kept_beside(place))
            log.warning("shard %d: the damaged files are kept in %s", partition, kept_beside(place))
        shutil.rmtree(former, ignore_errors=True)


def _former(place: Path) -> Path:
    return place.with_name(f"{place.name}{_FORMER}")


def _take_up(place: Path) -> None:
    former = _former(place)
    if place.exists():
        shutil.rmtree(former)
    else:
        former.rename(place)
