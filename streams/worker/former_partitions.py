"""Applies forget commands to the shards that stay on disk after their partitions moved.

A shard, day files and the analysts' rows stay on disk when a partition moves to a worker with a data directory of its
own: if it returns, only new records have to be read. So the log of these partitions is searched for forget
commands, from the shard's position on. In a shared directory, the shard is open or locked, and its owner applies
them. Windows are removed: their changelogs can restore all remaining rows.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from pathlib import Path
from typing import Any

import duckdb

from schemas.errors import DataDirError, ShardLocked, ShardNotHere, SiltstoneError, WindowsLocked
from schemas.events import ForgetUser, LongTermEvent
from schemas.settings import LifecycleSettings, LongTermSettings
from schemas.times import now_ms
from streams.forgetting.forgetters import Forgetting, forgettings, may_forget
from streams.kafka.inbox import Inbox
from streams.memory.analytics import AnalyticsJob
from streams.shards.owned import OwnedShards
from streams.summaries.agent import SummariesAgent
from tables.analysts.copy import parquet, unstage
from tables.database.inspection import catalogs, inspect_catalog, position
from tables.memories.shard import Shard
from tables.windows.window_stores import WindowStores

log = logging.getLogger(__name__)


class FormerWindows:
    """Removes windows of partitions that have moved to other workers: forget commands do not reach them here."""

    def __init__(self, stores: Callable[[], WindowStores], ours: Callable[[], Collection[int]]) -> None:
        self._stores, self._ours = stores, ours
        self._seen: frozenset[int] = frozenset()

    async def tick(self) -> None:
        """Remove windows that were not ours at the last tick either, because partitions often return within seconds.

        A partition that returns later is restored from its changelogs.
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
    """The shards in the data directory that are not this worker's.

    `end` returns the offset after the newest record of a partition's log, `read` the records between two offsets.
    """

    def __init__(
        self,
        *,
        data_dir: Path,
        shards: OwnedShards,
        summaries: SummariesAgent,
        analytics: AnalyticsJob,
        inbox: Inbox[LongTermEvent],
        long_term: LongTermSettings,
        lifecycle: LifecycleSettings,
        end: Callable[[int], Awaitable[int]],
        read: Callable[[int, int, int], AsyncIterator[Sequence[Any]]],
    ) -> None:
        self._data_dir, self._shards, self._inbox = data_dir, shards, inbox
        self._summaries, self._analytics = summaries, analytics
        self._long_term, self._lifecycle = long_term, lifecycle
        self._end, self._read = end, read
        self._looked: dict[int, int] = {}

    async def tick(self) -> None:
        """Apply the forget commands since the last tick. Those that fail are tried again at the next tick."""
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
                    continue  # its owner applies the commands
                except (SiltstoneError, TimeoutError, OSError, duckdb.Error) as exc:  # damaged, or a full disk
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
            """Apply the commands. Return the tables that were exported again for the analysts' copy."""
            held = inspect_catalog(partition, catalog)
            unstage(self._analytics.folder, [partition])
            if held.model is None:
                return frozenset()
            folder = catalog.parent
            shard = Shard(partition, folder, held.model, held.dimension, self._long_term, self._lifecycle)
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
