"""Analytics job: recreates the analysts' copy on a timer, and on request.

Each shard's rows are exported on the shard's own thread, and a thread of low priority assembles the copy. The
processor time of a copy is measured. The next copy waits until the average use since the beginning of the last copy
is at most `SHARE` of a core. A failed copy is logged and counted, and does not stop the worker. Even if copies are
disabled, an existing copy is recreated when something was forgotten, because it would keep the forgotten texts.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Final, ParamSpec, TypeVar

import duckdb

from schemas.errors import DataDirError, ShardNotHere, SiltstoneError
from schemas.settings import LifecycleSettings
from streams.runtime.background import yield_to_others
from streams.runtime.backlog_gate import BacklogGate
from streams.runtime.clock import Clock
from streams.shards.owned import OwnedShards
from streams.telemetry.metrics import Metrics
from tables.analysts.copy import FILE, Copy, Fingerprint, assemble, parquet, unstage
from tables.database.database import BRIEFLY, Interruption
from tables.memories.shard import Shard

log = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

Exported = tuple[Fingerprint, frozenset[str]]

#: Maximum share of a core that copies on a timer use on average. Because of this limit, large shards are copied less
#: often.
SHARE: Final = 0.05

#: Seconds between two attempts of `close` to interrupt a copy that is being assembled.
INTERRUPT_SECONDS = 0.05


class AnalyticsJob:
    """Makes the analysts' copy in `folder`. Only shards that have changed since the last copy are exported again.

    `memory` is the maximum memory, in bytes, for assembling a copy.
    """

    def __init__(
        self,
        *,
        folder: Path,
        shards: OwnedShards,
        metrics: Metrics,
        clock: Clock,
        gate: BacklogGate,
        lifecycle: LifecycleSettings,
        enabled: bool,
        memory: int = BRIEFLY,
        monotonic: Callable[[], float] = time.monotonic,
        processor: Callable[[], float] = time.thread_time,
    ) -> None:
        self.folder, self._shards, self._metrics, self._clock = folder, shards, metrics, clock
        self._gate, self._lifecycle, self._enabled = gate, lifecycle, enabled
        self._memory, self._monotonic, self._processor = memory, monotonic, processor
        #: Processor seconds that the current copy has used; and the earliest time (monotonic seconds) at which the
        #: timer may make the next copy.
        self._cost, self._next = 0.0, -math.inf
        #: True if an existing copy may contain forgotten data. True at the start, because of copies of earlier runs.
        self._outdated = True
        self._copied: dict[int, Fingerprint] = {}
        self._one_at_a_time = asyncio.Lock()
        self._interruption = Interruption()
        self._assembling: Future[Copy] | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="analytics", initializer=yield_to_others)

    async def tick(self) -> None:
        """Make a copy if the limit `SHARE` allows it, a shard has changed, and there is nothing more urgent to do.

        `SHARE` allows a copy if the last copy has used, on average since its beginning, at most this share of a core.
        After something was forgotten, a copy is made regardless of `SHARE`.
        """
        if not self._enabled and not (self._outdated and (self.folder / FILE).exists()):
            return
        if not self._shards.ready or not self._shards.partitions() or self._one_at_a_time.locked():
            return
        if self._gate.must_wait():
            self._count("postponed")
            return
        if self._monotonic() < self._next and not self._outdated:
            self._count("spared")
            return
        try:
            await self._make(anyway=False)
        except SiltstoneError as exc:
            log.warning("the analysts' copy was not made: %s", exc)

    def forgot(self) -> None:
        """Note that something was forgotten. The next `tick` then replaces the copy, even if copies are disabled."""
        self._outdated = True

    async def snapshot(self) -> Copy:
        """Make a copy on request, as soon as the intake has no backlog. Raises `DataDirError` and `ShardNotHere`."""
        await self._gate.wait()
        made = await self._make(anyway=True)
        assert made is not None
        return made

    async def put(self, exported: Mapping[int, frozenset[str]]) -> None:
        """Put tables, exported from shards that this worker does not own, into the copy. Raises `DataDirError`."""
        at = await self._shards.moment(self._clock)
        async with self._one_at_a_time:
            await self._assembled(exported, at)

    def close(self) -> None:
        """Interrupt the copy that is being made. To wait for it could take long, as its thread has a low priority."""
        self._thread.shutdown(wait=False, cancel_futures=True)
        while self._assembling is not None and not self._assembling.done():
            self._interruption.call()
            wait([self._assembling], INTERRUPT_SECONDS)
        self._thread.shutdown(wait=True)

    async def _assembled(self, exported: Mapping[int, frozenset[str]], at: int) -> Copy:
        self._assembling = self._thread.submit(
            self._measured, assemble, self.folder, exported, at, self._lifecycle, self._memory, self._interruption
        )
        return await asyncio.wrap_future(self._assembling)

    def _measured(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do `work` on the calling thread, and add its processor time to the cost of the copy."""
        began = self._processor()
        try:
            return work(*args, **kwargs)
        finally:
            self._cost += self._processor() - began

    def _exported(self, shard: Shard, copied: Fingerprint | None) -> Exported | None:
        return self._measured(shard.export, self.folder, copied)

    async def _make(self, *, anyway: bool) -> Copy | None:
        async with self._one_at_a_time:
            began, self._cost = self._monotonic(), 0.0
            try:
                return await self._changed_shards(anyway)
            except SiltstoneError:
                self._count("failed")
                raise
            finally:
                self._next = began + self._cost / SHARE

    async def _changed_shards(self, anyway: bool) -> Copy | None:
        outdated, self._outdated = self._outdated, False
        exported: dict[int, frozenset[str]] = {}
        prints: dict[int, Fingerprint] = {}
        partitions, done = self._shards.partitions(), False
        try:
            if not await self._export(partitions, anyway, exported, prints):
                self._count("postponed")
                return None
            made = None
            if exported or anyway:
                at = await self._shards.moment(self._clock)
                made = await self._assembled(exported, at)
            self._copied |= prints
            self._count("unchanged" if made is None else "made")
            done = True
        finally:
            if not done:
                # Delete the files: before the next export, a shard may move to another worker and erase data there,
                # and these files would still contain it.
                self._outdated |= outdated
                unstage(self.folder, partitions)
        return made

    async def _export(
        self,
        partitions: list[int],
        anyway: bool,
        exported: dict[int, frozenset[str]],
        prints: dict[int, Fingerprint],
    ) -> bool:
        """Export the changed shards for the next copy. Return False if more urgent work stopped the export."""
        here = False
        for partition in partitions:
            if not anyway and self._gate.must_wait():
                return False
            try:
                copied = self._still_copied(partition)
                found = await self._shards.call(partition, self._exported, copied)
            except ShardNotHere:
                continue  # the partition has just moved to another worker, which copies it
            except (duckdb.Error, OSError) as exc:
                raise DataDirError(self.folder, str(exc).splitlines()[0]) from exc
            here = True
            if found is not None:
                prints[partition], exported[partition] = found
        if not here:
            raise ShardNotHere(0, "this worker has no shards; ask another")
        return True

    def _still_copied(self, partition: int) -> Fingerprint | None:
        """Return a shard's fingerprint at the last copy; None if there is no copy, or its Parquet file is deleted."""
        there = parquet(self.folder, "memories", partition).exists()
        return self._copied.get(partition) if there else None

    def _count(self, outcome: str) -> None:
        self._metrics.snapshots.labels(outcome).inc()
