"""The partitions with state on this worker's disk, and their offsets: reported to the group when the worker joins."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from streams.shards.owned import OwnedShards
from tables.reached import note_reached, reached

#: Seconds between two notes of the shards' offsets. The group may place a partition by a note of this age.
NOTED_SECONDS: Final = 5.0


class LocalPartitions:
    """Offsets of the shards in `folder`: the current offset of an open shard, else the offset noted in its files."""

    def __init__(self, folder: Path, shards: OwnedShards) -> None:
        self._folder, self._shards = folder, shards
        self._on_disk: Mapping[int, int] = reached(folder)
        self._noted: dict[int, int] = {}

    def held(self) -> dict[int, int]:
        """The shards' offsets in `long-term`, by partition. Safe from any thread."""
        return {**self._on_disk, **self._shards.positions()}

    async def tick(self) -> None:
        """Write the offsets of open shards to their folders, and read the offsets that are noted in all folders."""
        self._on_disk = await asyncio.to_thread(self._look, self._shards.positions())

    def _look(self, positions: Mapping[int, int]) -> dict[int, int]:
        for partition, offset in positions.items():
            if self._noted.get(partition) != offset:
                note_reached(self._folder / str(partition), offset)
        self._noted = dict(positions)
        return reached(self._folder)
