"""The partitions with state on this worker's disk, and their offsets, which the worker reports to the group."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from streams.shards.owned import OwnedShards
from tables.reached import note_reached, reached

#: Seconds between two writes of the open shards' offsets to the disk. So an offset by which the group places a
#: partition may be outdated by this time.
NOTED_SECONDS: Final = 5.0


class LocalPartitions:
    """The offsets of the shards in `folder`.

    For an open shard, this is its current offset. For any other shard, it is the offset that was last written to its
    folder.
    """

    def __init__(self, folder: Path, shards: OwnedShards) -> None:
        self._folder, self._shards = folder, shards
        self._on_disk: Mapping[int, int] = reached(folder)
        self._noted: dict[int, int] = {}

    def held(self) -> dict[int, int]:
        """Return the offset in `long-term` of each shard on this disk, by partition. Safe from any thread."""
        return {**self._on_disk, **self._shards.positions()}

    async def tick(self) -> None:
        """Write the offsets of open shards to their folders, then read the offsets in the folders of all shards."""
        self._on_disk = await asyncio.to_thread(self._look, self._shards.positions())

    def _look(self, positions: Mapping[int, int]) -> dict[int, int]:
        for partition, offset in positions.items():
            if self._noted.get(partition) != offset:
                note_reached(self._folder / str(partition), offset)
        self._noted = dict(positions)
        return reached(self._folder)
