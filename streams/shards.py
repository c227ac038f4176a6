"""The shards of the partitions that this worker owns: opened when assigned, closed when revoked.

Each shard has a thread of its own, so its DuckDB file and its index are used by one call at a time, and never
on the event loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from schemas.errors import ShardLocked, ShardNotHere
from schemas.settings import LongTermSettings
from streams.clients.embedding import Embedding
from tables.shard import Shard

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

#: How long to wait for a shard's former owner to let go of it.
HAND_OVER_SECONDS = 30.0


class OwnedShards:
    """Opens, closes and calls this worker's shards. `on_failure` is told when one cannot be opened."""

    def __init__(
        self,
        folder: Path,
        settings: LongTermSettings,
        embedding: Embedding,
        on_failure: Callable[[BaseException, str], None],
    ) -> None:
        self._folder, self._settings, self._embedding = folder, settings, embedding
        self._on_failure = on_failure
        self._open: dict[int, asyncio.Task[Shard]] = {}
        self._threads: dict[int, ThreadPoolExecutor] = {}

    def own(self, partitions: frozenset[int]) -> None:
        """These are ours from now on; what is not, is closed in the background."""
        for partition in list(self._open):
            if partition not in partitions:
                task = asyncio.ensure_future(self._close(partition))
                task.add_done_callback(_log_failure)
        for partition in partitions - self._open.keys():
            self._threads[partition] = ThreadPoolExecutor(1, thread_name_prefix=f"shard-{partition}")
            self._open[partition] = asyncio.ensure_future(self._opened(partition))

    def partitions(self) -> list[int]:
        return sorted(self._open)

    @property
    def ready(self) -> bool:
        """Whether every shard of ours is open."""
        return all(task.done() and not task.cancelled() and not task.exception() for task in self._open.values())

    async def call(
        self, partition: int, method: Callable[Concatenate[Shard, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """`method(shard, …)` on the shard's thread. Raises `ShardNotHere` where the partition is not ours."""
        task = self._open.get(partition)
        if task is None:
            raise ShardNotHere(partition, "its partition is on another worker, or moving; ask again")
        shard = await asyncio.shield(task)
        try:
            return await asyncio.get_running_loop().run_in_executor(
                self._threads[partition], lambda: method(shard, *args, **kwargs)
            )
        except (KeyError, RuntimeError) as exc:
            if partition not in self._open:
                raise ShardNotHere(partition, "its partition has just moved; ask again") from exc
            raise

    async def call_each(
        self, method: Callable[Concatenate[Shard, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> list[T]:
        """`call` on every shard of ours, one after the other."""
        return [await self.call(partition, method, *args, **kwargs) for partition in self.partitions()]

    async def close(self) -> None:
        """Save and close all."""
        await asyncio.gather(*(self._close(partition) for partition in list(self._open)))

    async def _opened(self, partition: int) -> Shard:
        try:
            model = await self._embedding.model()
            return await self._wait_for_hand_over(partition, model.name, model.dimension)
        except asyncio.CancelledError:
            raise
        except Exception as exc:
            self._on_failure(exc, f"shard {partition}")
            raise

    async def _wait_for_hand_over(self, partition: int, model: str, dimension: int) -> Shard:
        loop = asyncio.get_running_loop()
        folder = self._folder / str(partition)
        deadline = loop.time() + HAND_OVER_SECONDS
        while True:
            try:
                return await loop.run_in_executor(
                    self._threads[partition], Shard, partition, folder, model, dimension, self._settings
                )
            except ShardLocked as exc:
                if loop.time() > deadline:
                    raise
                log.info("%s", exc)
                await asyncio.sleep(0.5)

    async def _close(self, partition: int) -> None:
        task, thread = self._open.pop(partition), self._threads.pop(partition)
        try:
            if not task.done():
                task.cancel()
            elif not task.cancelled() and task.exception() is None:
                shard = task.result()
                await asyncio.get_running_loop().run_in_executor(thread, shard.close)
        finally:
            thread.shutdown(wait=False)


def _log_failure(task: asyncio.Future[None]) -> None:
    if not task.cancelled() and (exc := task.exception()):
        log.error("a shard did not close cleanly: %s: %s", type(exc).__name__, exc)
