"""Which partitions' state is on this worker's disk, and how far: what it tells the group when it joins."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from streams.shards.owned import OwnedShards
from tables.reached import note_reached, reached

#: How often it is noted how far the shards are. Who gets a partition may be decided by what is so old.
NOTED_SECONDS: Final = 5.0


class LocalPartitions:
    """`shards` is the folder that they are in. What is told is of now where a shard is open, else of its files."""

    def __init__(self, folder: Path, shards: OwnedShards) -> None:
        self._folder, self._shards = folder, shards
        self._on_disk: Mapping[int, int] = reached(folder)
        self._noted: dict[int, int] = {}

    def held(self) -> dict[int, int]:
        """Offsets of `long-term` by partition. It may be asked from any thread."""
        return {**self._on_disk, **self._shards.positions()}

    async def tick(self) -> None:
        """Note it beside the shards, and look what else is there."""
        self._on_disk = await asyncio.to_thread(self._look, self._shards.positions())

    def _look(self, positions: Mapping[int, int]) -> dict[int, int]:
        for partition, offset in positions.items():
            if self._noted.get(partition) != offset:
                note_reached(self._folder / str(partition), offset)
        self._noted = dict(positions)
        return reached(self._folder)
