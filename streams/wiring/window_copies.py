"""The windows' rows of a partition beside its shard in a checkpoint: a copy by links, which never changes."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from schemas.errors import DataDirError
from streams.restoring import WINDOWS
from tables.checkpoints.snapshot import Position, SnapshotFile
from tables.windows.window_stores import WindowStores


class WindowCopy(NamedTuple):
    """`positions` by changelog."""

    folder: Path
    files: Sequence[SnapshotFile]
    positions: Mapping[str, Position]

    async def close(self) -> None:
        await asyncio.to_thread(shutil.rmtree, self.folder, ignore_errors=True)


async def window_copy(stores: WindowStores, partition: int, folder: Path) -> WindowCopy | None:
    """None where the partition's rows are not open: the checkpoint has none then, and the changelogs have all."""
    return await asyncio.to_thread(_copied, stores, partition, folder / str(partition))


def _copied(stores: WindowStores, partition: int, folder: Path) -> WindowCopy | None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    try:
        places = stores.snapshot(partition, folder)
    except (KeyError, DataDirError):
        return None
    files = [
        SnapshotFile(f"{WINDOWS}/{path.name}", path, path.stat().st_size, path.suffix == ".sst")
        for path in sorted(folder.iterdir())
    ]
    return WindowCopy(folder, files, {name: Position(place.topic_id, place.offset) for name, place in places.items()})
