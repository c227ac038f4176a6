"""Copies of a partition's window rows for its checkpoint: links to the store's files, which never change."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from schemas.errors import DataDirError
from streams.shards.restore.restoring_windows import WINDOWS
from tables.checkpoints.snapshot import Position, SnapshotFile
from tables.windows.window_stores import WindowStores


class WindowCopy(NamedTuple):
    """The implementation of `Copy` for window rows, with its files in `folder`.

    `positions` has the position of each changelog.
    """

    folder: Path
    files: Sequence[SnapshotFile]
    positions: Mapping[str, Position]
    changes: int
    in_files: bool

    async def close(self) -> None:
        await asyncio.to_thread(shutil.rmtree, self.folder, ignore_errors=True)


class WindowCopies:
    """The `AccompanyingRows` of `streams.shards.restore.accompanying_rows` for window rows.

    The copies lie below `folder`. Each partition has at most one copy at a time.
    """

    def __init__(self, stores: WindowStores, folder: Path) -> None:
        self._stores, self._folder = stores, folder

    def changes(self, partition: int) -> int | None:
        return self._stores.changes(partition)

    async def copy(self, partition: int) -> WindowCopy | None:
        """Return a copy of the partition's rows, or None if they are not open or cannot be copied.

        Without a copy, the checkpoint has no window rows. Nothing is lost, because the changelogs have all rows.
        """
        return await asyncio.to_thread(self._copied, partition)

    def _copied(self, partition: int) -> WindowCopy | None:
        folder = self._folder / str(partition)
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        try:
            copied = self._stores.snapshot(partition, folder)
        except (KeyError, DataDirError):
            return None
        files = [
            SnapshotFile(f"{WINDOWS}/{path.name}", path, path.stat().st_size, path.suffix == ".sst")
            for path in sorted(folder.iterdir())
        ]
        positions = {name: Position(place.topic_id, place.offset) for name, place in copied.places.items()}
        return WindowCopy(folder, files, positions, copied.changes, copied.in_files)
