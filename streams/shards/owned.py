"""The shards of the partitions that this worker owns: opened when assigned, closed when revoked.

Each shard has its own thread. So its DuckDB file and its index execute one call at a time, and never on the event
loop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, tzinfo
from functools import partial
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import duckdb

from schemas.errors import DamagedShard, DataDirError, EmbeddingMismatch, ShardError, ShardLocked, ShardNotHere
from schemas.settings import LifecycleSettings, LongTermSettings, Updates
from streams.models.embedding.embedding import Embedding
from streams.runtime.cancellation import Cancellation
from streams.runtime.clock import Clock
from streams.runtime.memory_shares import MemoryShares, in_units
from streams.shards.models import ModelChanged, Models, ShardModel
from streams.telemetry.recovery_progress import RecoveryProgress
from tables.database.database import ALONE
from tables.memories.catalog.damage import damage_reported
from tables.memories.catalog.reembedding import VectorModel
from tables.memories.shard import Shard
from tables.reached import note_reached
from tables.search.recent import Recent
from tables.vectors.index import VectorIndex

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

#: Calls a method of a shard on its thread, as `OwnedShards.call` does.
CallShard = Callable[..., Awaitable[Any]]
#: Restores the newest usable state of a partition into its folder. The vectors of a usable state come from one of the
#: given models. If the state that is in the folder cannot be opened because of damage, the error is given, and raised
#: if no other state is usable.
Bring = Callable[[int, Path, Sequence[VectorModel], DamagedShard | None], Awaitable[None]]
#: Called with a partition that leaves this worker, before its shard is closed.
Leaving = Callable[[int, CallShard], Awaitable[None]]

#: Seconds to wait until the former owner of a shard has closed it.
HAND_OVER_SECONDS = 30.0


class OwnedShards:
    """Opens, closes and calls this worker's shards. `on_failure` is called when a shard cannot be opened."""

    def __init__(
        self,
        folder: Path,
        settings: LongTermSettings,
        lifecycle: LifecycleSettings,
        embedding: Embedding,
        on_failure: Callable[[BaseException, str], None],
        memory: MemoryShares = MemoryShares.of(4 << 30),  # noqa: B008 - it is immutable
        updates: Updates = "rank",
        zone: tzinfo = UTC,
    ) -> None:
        self._folder, self.models, self._memory = folder, Models(embedding), memory
        self._settings, self._lifecycle, self._updates, self._zone = settings, lifecycle, updates, zone
        self._on_failure, self._recent = on_failure, Recent(memory.caches)
        #: `bring` is called before a shard is opened, and `leaving` before a shard is closed.
        self.bring: Bring | None = None
        self.leaving: Leaving | None = None
        self.coming_back = RecoveryProgress()
        self._open: dict[int, asyncio.Task[Shard]] = {}
        self._threads: dict[int, ThreadPoolExecutor] = {}
        self._closing: dict[int, asyncio.Future[None]] = {}

    def own(self, partitions: frozenset[int]) -> None:
        """Open the shards of these partitions, and close all other shards, both in the background."""
        for partition in self._open.keys() - partitions:
            self._closing[partition] = asyncio.ensure_future(self._close(partition))
            self._closing[partition].add_done_callback(_log_failure)
        self.coming_back.keep(partitions)
        for partition in partitions - self._open.keys():
            self.coming_back.begins(partition, "memories", "opening")
            self._threads[partition] = ThreadPoolExecutor(1, thread_name_prefix=f"shard-{partition}")
            self._open[partition] = asyncio.ensure_future(self._opened(partition))
        self._share_memory()

    def _share_memory(self) -> None:
        """Give each open shard an equal share of the memory. A shard that is being opened gets its share later."""
        shards, limit = len(self._open), self._memory.limit
        if (needed := self._memory.needed(shards)) > limit:
            log.warning(
                "memory_limit (%s) is too small for %d shards, which may need %s: raise it, or start more workers",
                in_units(limit),
                shards,
                in_units(needed),
            )
        memory = self._memory.a_shard(shards)
        for partition, task in self._open.items():
            if task.done() and not task.cancelled() and task.exception() is None:
                self._threads[partition].submit(task.result().limit_memory, memory)

    def new_shard(self, partition: int, folder: Path, model: str, dimension: int, memory: int = ALONE) -> Shard:
        """Open a shard with the settings of this worker, on the calling thread. See `Shard`.

        Also raises `DamagedShard`.
        """
        given = (partition, folder, model, dimension, self._settings, self._lifecycle, self._recent, memory)
        with damage_reported(folder, partition):
            return Shard(*given, updates=self._updates, zone=self._zone)

    def partitions(self) -> list[int]:
        return sorted(self._open)

    def positions(self) -> dict[int, int]:
        """For each open shard, the offset in `long-term` up to which it has applied events. Safe from any thread."""
        found = {}
        for partition, task in list(self._open.items()):
            if task.done() and not task.cancelled() and task.exception() is None:
                with suppress(AttributeError):  # the shard is just being closed
                    found[partition] = task.result().position()
        return found

    @property
    def ready(self) -> bool:
        """True if every owned shard is open."""
        return all(task.done() and not task.cancelled() and not task.exception() for task in self._open.values())

    async def position(self, partition: int) -> int:
        """The offset in `long-term` up to which the partition's shard has applied the events.

        This does not use the shard's thread, because it is called before each group of events.

        Raises `ShardNotHere` if this worker does not own the partition.
        """
        return (await self._shard(partition)).position()

    async def call(
        self, partition: int, method: Callable[Concatenate[Shard, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Call `method(shard, …)` on the shard's thread, and return its result.

        Raises `ShardNotHere` if this worker does not own the partition. When the caller is cancelled, the
        `cancellable` loops of the method end.
        """
        shard, cancellation = await self._shard(partition), Cancellation()
        try:
            return await asyncio.get_running_loop().run_in_executor(
                self._threads[partition], lambda: cancellation.run(method, shard, *args, **kwargs)
            )
        except asyncio.CancelledError:
            cancellation.requested = True
            raise
        except duckdb.OutOfMemoryException as exc:
            share = in_units(self._memory.a_shard(len(self._open)))
            raise ShardError(
                partition,
                f"its database cannot work with {share}: raise memory_limit, or give its worker fewer partitions",
            ) from exc
        except (duckdb.OperationalError, duckdb.FatalException) as exc:
            why = str(exc).splitlines()[0]
            raise DataDirError(self._folder / str(partition), f"{why} (is the disk full?)") from exc
        except (KeyError, RuntimeError) as exc:
            if partition not in self._open:
                raise ShardNotHere(partition, "its partition has just moved; ask again") from exc
            raise

    async def _shard(self, partition: int) -> Shard:
        task, asking = self._open.get(partition), asyncio.current_task()
        if task is None:
            raise ShardNotHere(partition, "its partition is on another worker, or moving; ask again")
        try:
            shard = await asyncio.shield(task)
        except asyncio.CancelledError:
            if not task.cancelled() or (asking is not None and asking.cancelling()):
                raise
            # The opening was cancelled, not this caller. A CancelledError would end the caller silently.
            raise ShardNotHere(partition, "its partition has just moved; ask again") from None
        if self._open.get(partition) is not task:  # the shard is being closed, or opened again
            raise ShardNotHere(partition, "its partition has just moved; ask again")
        return shard

    async def call_each(
        self, method: Callable[Concatenate[Shard, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> list[T]:
        """`call` the method on every owned shard, one after the other."""
        return [await self.call(partition, method, *args, **kwargs) for partition in self.partitions()]

    async def moment(self, clock: Clock) -> int:
        """The clock's time (epoch ms).

        An event clock has no time before its first event. Then the time of the newest event in the shards is
        returned.
        """
        return clock.now() or max(await self.call_each(lambda shard: shard.ageing.newest_event()), default=0)

    async def with_model(self, partition: int, work: Callable[[ShardModel], Awaitable[T]]) -> T:
        """Run `work`, which embeds for a shard; run it again if the shard's model changes before it ends."""
        while True:
            try:
                return await work(ShardModel(self.models, partition, self.call))
            except ModelChanged:
                continue

    async def change_model(self, partition: int, embedding: Embedding, index: VectorIndex) -> bool:
        """Switch a shard to the vectors of a new model. Return False if some vectors are still missing, else True."""
        loop = asyncio.get_running_loop()

        def adopted(shard: Shard) -> bool:
            done = shard.adopt(index)
            if done:
                self.models.move(partition, embedding, loop)
            return done

        return await self.call(partition, adopted)

    async def with_files_of(self, partition: int, work: Callable[[], T]) -> T:
        """Run `work` in a thread on the files of a shard that this worker does not own.

        Raises `ShardNotHere` if this worker owns the partition. If the partition is assigned to this worker
        meanwhile, its shard is opened when `work` has ended.
        """
        while (closing := self._closing.get(partition)) is not None and not closing.done():
            await asyncio.wait([closing])
        if partition in self._open:
            raise ShardNotHere(partition, "it has just come back")
        working = asyncio.ensure_future(asyncio.to_thread(work))
        self._closing[partition] = done = asyncio.ensure_future(_over(working))
        done.add_done_callback(_log_failure)
        return await asyncio.shield(working)

    async def close(self) -> None:
        """Save and close all shards. If a shard fails to close, raise its error after all of them are closed."""
        self.own(frozenset())
        for fault in await asyncio.gather(*self._closing.values(), return_exceptions=True):
            if isinstance(fault, Exception):
                raise fault

    async def _opened(self, partition: int) -> Shard:
        if (closing := self._closing.get(partition)) is not None:
            await asyncio.wait([closing])  # the partition was revoked and assigned again, and is still being closed
        try:
            try:
                shard = await self._restored(partition, None)
            except DamagedShard as exc:
                if self.bring is None:
                    raise
                shard = await self._restored(partition, exc)
            self.coming_back.begins(partition, "memories", "catching up")
            return shard
        except asyncio.CancelledError:
            raise
        except Exception as exc:
            self._on_failure(exc, f"shard {partition}")
            raise

    async def _restored(self, partition: int, damaged: DamagedShard | None) -> Shard:
        """Restore the newest usable state of a partition, and open it. See `Bring`."""
        if self.bring is not None:
            made = [await embedding.model() for embedding in self.models.candidates(partition)]
            models = [VectorModel(model.name, model.dimension) for model in made]
            await self.bring(partition, self._folder / str(partition), models, damaged)
            self.coming_back.begins(partition, "memories", "opening")
        return await self._of_either_model(partition)

    async def _of_either_model(self, partition: int) -> Shard:
        """Open a shard. During a change of the model, its vectors may come from the former or the next model."""
        refused: EmbeddingMismatch | None = None
        for embedding in self.models.candidates(partition):
            model = await embedding.model()
            try:
                shard = await self._wait_for_hand_over(partition, model.name, model.dimension)
            except EmbeddingMismatch as exc:
                refused = refused or exc
            else:
                self.models.move(partition, embedding, asyncio.get_running_loop())
                return shard
        assert refused is not None
        raise refused

    async def _wait_for_hand_over(self, partition: int, model: str, dimension: int) -> Shard:
        loop = asyncio.get_running_loop()
        folder, thread = self._folder / str(partition), self._threads[partition]
        deadline = loop.time() + HAND_OVER_SECONDS
        while True:
            memory = self._memory.a_shard(len(self._open))
            opening = thread.submit(self.new_shard, partition, folder, model, dimension, memory)
            try:
                shard = await asyncio.shield(asyncio.wrap_future(opening))
                # The number of shards may have changed while this shard was being opened.
                thread.submit(shard.limit_memory, self._memory.a_shard(len(self._open)))
                return shard
            except asyncio.CancelledError:
                thread.submit(_close_opened, opening)
                raise
            except ShardLocked as exc:
                if loop.time() > deadline:
                    raise
                log.info("%s", exc)
                await asyncio.sleep(0.5)

    def _close(self, partition: int) -> Coroutine[Any, Any, None]:
        return self._closed(partition, self._open.pop(partition), self._threads.pop(partition))

    async def _closed(self, partition: int, task: asyncio.Task[Shard], thread: ThreadPoolExecutor) -> None:
        """Close a shard, even if it is still being opened, because its next owner waits until it is closed."""
        try:
            if not task.done():
                task.cancel()
                await asyncio.wait([task])
            if not task.cancelled() and task.exception() is None:
                shard = task.result()
                folder, position = self._folder / str(shard.partition), shard.position()
                try:
                    if self.leaving is not None:
                        await self.leaving(partition, partial(_called, thread, shard))
                finally:
                    await asyncio.wrap_future(thread.submit(shard.close))
                await asyncio.to_thread(note_reached, folder, position)
        finally:
            await asyncio.wrap_future(thread.submit(_nothing))  # wait for the calls submitted before
            thread.shutdown(wait=False)


async def _called(
    thread: ThreadPoolExecutor,
    shard: Shard,
    method: Callable[Concatenate[Shard, P], T],
    *args: P.args,
    **kwargs: P.kwargs,
) -> T:
    return await asyncio.wrap_future(thread.submit(method, shard, *args, **kwargs))


def _close_opened(opening: Future[Shard]) -> None:
    """Close a shard that was just opened. Runs on its thread, after the opening has ended."""
    if opening.exception() is None:
        opening.result().close()


async def _over(working: asyncio.Future[Any]) -> None:
    await asyncio.wait([working])


def _nothing() -> None:
    pass


def _log_failure(task: asyncio.Future[None]) -> None:
    if not task.cancelled() and (exc := task.exception()):
        log.error("a shard did not close cleanly: %s: %s", type(exc).__name__, exc)
