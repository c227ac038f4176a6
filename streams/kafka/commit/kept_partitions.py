"""Opens the window stores of assigned partitions, and closes the stores of all other partitions."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import AsyncExitStack
from typing import Final

from schemas.errors import WindowsLocked
from tables.windows.partition_store import Place
from tables.windows.window_stores import WindowStores

log = logging.getLogger(__name__)

#: Maximum seconds to wait until the former owner of a partition has closed the partition's store.
HAND_OVER_SECONDS: Final = 30.0
ASK_AGAIN_SECONDS: Final = 0.5


class KeptPartitions:
    """Opens and closes window stores for the recovery of the tables, and finds the place in a changelog to read from.

    If `stores` is None, the worker has no window stores, and every changelog is read from its start.
    """

    def __init__(self, stores: WindowStores | None, bring: Callable[[Sequence[int]], Awaitable[None]]) -> None:
        """`bring` is called before the stores of partitions are opened.

        It may fetch the rows of these partitions from a faster source than their changelogs.
        """
        self.stores, self._bring = stores, bring

    async def own(self, partitions: Collection[int]) -> None:
        """Open the stores of these partitions, and close all other stores. Raises `WindowsLocked`, `DataDirError`."""
        if self.stores is None:
            return
        await leave_all_but(partitions, self.stores)
        come = [partition for partition in sorted(partitions) if self.stores.store(partition) is None]
        if come:
            await self._bring(come)
        for partition in come:
            await self._open(self.stores, partition)

    async def _open(self, stores: WindowStores, partition: int) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + HAND_OVER_SECONDS
        while True:
            try:
                stores.open(partition)
                return
            except WindowsLocked as exc:
                if loop.time() > deadline:
                    raise
                log.info("%s", exc)
                await asyncio.sleep(ASK_AGAIN_SECONDS)

    def resume(self, changelog: str, partition: int) -> Place | None:
        """Return the place from which the changelog must be read; None if it must be read from its start."""
        return None if self.stores is None else self.stores.resume(changelog, partition)

    def clear(self, changelog: str, partition: int) -> None:
        if self.stores is not None:
            self.stores.clear(changelog, partition)

    def restored(self, changelog: str, partition: int, offset: int, rows: int, read: int) -> None:
        """Note that the stored rows include all records of the changelog before `offset`."""
        if self.stores is not None:
            self.stores.restored(changelog, partition, offset, rows, read)


async def leave_all_but(partitions: Collection[int], stores: WindowStores) -> None:
    """Close the stores of all partitions except these, in threads.

    If a store cannot be closed, the error is raised only after all other stores are closed. All these stores are
    removed from `stores` before the first await, so that a running flush does not write to a closed store.
    """
    async with AsyncExitStack() as closing:
        for partition in stores.partitions():
            if partition not in partitions:
                closing.push_async_callback(asyncio.to_thread, stores.leave(partition).close)
