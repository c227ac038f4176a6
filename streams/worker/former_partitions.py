"""Applies forget commands to the shards that stay on disk after their partitions have moved to other workers.

If workers have separate data directories, the shard, the day files and the analysts' rows of a partition stay on disk
when the partition moves. If the partition returns, only new records have to be read. So this worker searches the log
of these partitions for forget commands, from the shard's position on. If workers share a data directory, the new
owner has the shard open, and applies the commands itself. Windows are removed, because their changelogs can restore
all rows that are not forgotten.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import duckdb

from schemas.errors import DataDirError, ShardLocked, ShardNotHere, SiltstoneError, WindowsLocked
from schemas.events import ForgetUser, LongTermEvent
from schemas.times import now_ms
from streams.forgetting.forgetters import Forgetting, forgettings, may_forget
from streams.kafka.inbox import Inbox
from streams.memory.analytics import AnalyticsJob
from streams.shards.owned import OwnedShards
from streams.summaries.agent import SummariesAgent
from tables.analysts.copy import parquet, unstage
from tables.database.inspection import catalogs, inspect_catalog, position
from tables.windows.window_stores import WindowStores

log = logging.getLogger(__name__)


class FormerWindows:
    """Removes the windows of partitions that have moved to other workers.

    Otherwise the files of these windows would keep forgotten data, because forget commands do not reach them.
    """

    def __init__(self, stores: Callable[[], WindowStores], ours: Callable[[], Collection[int]]) -> None:
        self._stores, self._ours = stores, ours
        self._seen: frozenset[int] = frozenset()

    async def tick(self) -> None:
        """Remove the windows of partitions that this worker owned neither at this tick nor at the previous tick.

        Windows are kept for one more tick, because partitions often return within seconds. If a partition returns
        later, its windows are restored from their changelogs.
        """
        stores, ours = self._stores(), self._ours()
        if not ours:
            return  # partitions are not assigned yet
        former = stores.former() - frozenset(ours)
        for partition in sorted(former & self._seen):
            try:
                stores.drop(partition)
                log.info("windows %d: another worker owns them now; their files here are removed", partition)
            except WindowsLocked:
                continue  # another worker on the same disk owns them
            except DataDirError as exc:
                log.warning(
                    "windows %d: another worker owns them now, but their files here cannot be removed: %s",
                    partition,
                    exc,
                )
        self._seen = former


class FormerShards:
    """Applies forget commands to shards in the data directory whose partitions other workers own.

    `end` returns the offset after the newest record of a partition's log. `read` returns the records between two
    offsets.
    """

    def __init__(
        self,
        *,
        data_dir: Path,
        shards: OwnedShards,
        summaries: SummariesAgent,
        analytics: AnalyticsJob,
        inbox: Inbox[LongTermEvent],
        end: Callable[[int], Awaitable[int]],
        read: Callable[[int, int, int], AsyncIterator[Sequence[Any]]],
    ) -> None:
        self._data_dir, self._shards, self._inbox = data_dir, shards, inbox
        self._summaries, self._analytics = summaries, analytics
        self._end, self._read = end, read
        self._looked: dict[int, int] = {}

    async def tick(self) -> None:
        """Apply the forget commands since the last tick. If this fails for a shard, the next tick tries it again."""
        ours = self._shards.partitions()
        for partition in ours:
            self._looked.pop(partition, None)
        if not ours:
            return  # partitions are not assigned yet
        for partition, catalog in catalogs(self._data_dir).items():
            if partition not in self._shards.partitions():
                try:
                    await self._follow(partition, catalog)
                except (ShardLocked, ShardNotHere):
                    continue  # the shard's owner applies the commands
                except (SiltstoneError, TimeoutError, OSError, duckdb.Error) as exc:  # such as damage, or a full disk
                    why = type(exc).__name__ if isinstance(exc, duckdb.Error) else exc
                    log.warning("shard %d: its files here were not checked for forgotten data: %s", partition, why)

    async def _follow(self, partition: int, catalog: Path) -> None:
        start = self._looked.get(partition)
        if start is None:
            start = await self._shards.with_files_of(partition, lambda: position(partition, catalog))
        end = await self._end(partition)
        if start >= end:
            return
        found = list[Forgetting]()
        async for records in self._read(partition, start, end):
            found += forgettings(self._inbox.read_again(filter(may_forget, records)), now_ms())
        await self._forget(partition, catalog, found)
        self._looked[partition] = end

    async def _forget(self, partition: int, catalog: Path, found: Sequence[Forgetting]) -> None:
        if not found:
            return
        copy = parquet(self._analytics.folder, "memories", partition)

        def forgotten() -> frozenset[str]:
            """Apply the forget commands. Return the tables that were exported again for the analysts' copy."""
            held = inspect_catalog(partition, catalog)
            unstage(self._analytics.folder, [partition])
            if held.model is None:
                return frozenset()
            folder = catalog.parent
            shard = self._shards.new_shard(partition, folder, held.model, held.dimension)
            try:
                shard.forget_ahead([event for event, _ in found], now_ms())
                exported = shard.export(self._analytics.folder, None) if copy.exists() else None
            finally:
                shard.close()
            return exported[1] if exported is not None else frozenset()

        exported = await self._shards.with_files_of(partition, forgotten)
        if exported:
            await self._analytics.put({partition: exported})
        for event, at in found:
            if isinstance(event, ForgetUser):
                await self._summaries.forget_earlier(event.user_id, at)
        log.info("shard %d: another worker owns it now; %d forget commands were applied here", partition, len(found))
