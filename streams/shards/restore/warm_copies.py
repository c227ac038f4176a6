"""Warm copies of other workers' partitions: refreshed from the newest checkpoints, and in place when they are needed.

The group's leader says whose (`kafka/placing`). A worker that is given a partition of which it has a copy moves that
into its place, and only the log's tail is read. What is not its duty any more is removed.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from schemas.errors import CheckpointError, DataDirError, ShardLocked
from streams.runtime.background import in_background
from streams.telemetry.metrics import Metrics
from tables.checkpoints.fitting import misfit
from tables.checkpoints.replacing import position_of
from tables.checkpoints.warm import WarmCopies, WarmCopy
from tables.memories.catalog.reembedding import VectorModel
from tables.memories.frozen import FOLDER, LONG_TERM

log = logging.getLogger(__name__)

#: How often it is looked for newer checkpoints.
LOOK_SECONDS: Final = 10.0
#: For so many ticks a copy stays without being a duty: duties are told a moment before partitions are assigned.
SPARED: Final = 2


class _Wanted(Exception):
    """The partition is ours now: what there is of it is taken as it is."""


class WarmJob:
    """`ours` are the partitions of this worker. `topic_id` names the topic that is the log now.

    `is_member` asks the group whether this worker still belongs to it.
    """

    def __init__(
        self,
        *,
        copies: WarmCopies,
        partitions: int,
        ours: Callable[[], Collection[int]],
        topic_id: Callable[[], str],
        is_member: Callable[[], Awaitable[bool]],
        metrics: Metrics,
    ) -> None:
        self._copies, self._partitions, self._ours, self._topic_id = copies, partitions, ours, topic_id
        self._is_member, self._metrics = is_member, metrics
        copies.clean()
        self._held: dict[int, WarmCopy] = copies.all()
        self._duties: frozenset[int] = frozenset()
        self._spare: defaultdict[int, int] = defaultdict(int)
        self._wanted: set[int] = set()
        self._locks: defaultdict[int, asyncio.Lock] = defaultdict(asyncio.Lock)

    def held(self) -> dict[int, int]:
        """Offsets of `long-term` by partition. It may be asked from any thread."""
        return {partition: _offset(copy) for partition, copy in list(self._held.items())}

    def told(self, duties: frozenset[int]) -> None:
        """Of these copies are to be kept from now on. It may be told from any thread."""
        self._duties = duties

    async def tick(self) -> None:
        """Make copies as new as their checkpoints, and remove those that are no longer this worker's duty."""
        for partition in sorted(self._duties - frozenset(self._ours())):
            await self._refresh(partition)
        unwanted = self._held.keys() - self._duties
        for partition in self._spare.keys() - unwanted:
            del self._spare[partition]
        for partition in unwanted:
            self._spare[partition] += 1
            if self._spare[partition] > SPARED:
                async with self._locks[partition]:
                    self._held.pop(partition, None)
                    try:
                        await in_background(partial(self._copies.drop, partition), "warm")
                    except OSError as exc:  # it is found again at the next start
                        log.warning("shard %d: its warm copy could not be removed: %s", partition, exc)
        self._metrics.warm_copies.set(len(self._held))

    async def _refresh(self, partition: int) -> None:
        def progress(done: int, whole: int) -> None:
            if partition in self._wanted:
                raise _Wanted

        async with self._locks[partition]:
            former = self._held.get(partition)
            try:
                copy = await in_background(
                    partial(self._copies.refresh, partition, former, progress), "warm", low_priority=True
                )
            except _Wanted:
                return
            except (CheckpointError, DataDirError, OSError) as exc:
                log.warning("shard %d: its warm copy stays as it was: %s", partition, exc)
                if former is not None and not former.files.exists():
                    del self._held[partition]
                return
            if copy is not None and copy is not former:
                self._held[partition] = copy
                log.info("shard %d: a warm copy of checkpoint %d is here", partition, copy.manifest.generation)

    async def bring(self, partition: int, folder: Path, models: Sequence[VectorModel]) -> None:
        """Put the copy of a partition that is ours now in its shard's folder, where it is ahead of what is there."""
        if partition not in self._held:
            return
        self._wanted.add(partition)
        try:
            async with self._locks[partition]:
                copy = self._held.pop(partition, None)
                if copy is None:
                    return
                own = await in_background(partial(position_of, folder), "warm")
                if not self._fits(copy, models) or (own is not None and own >= _offset(copy)):
                    await in_background(partial(self._copies.drop, partition), "warm")
                    return
                if not await self._is_member():  # the partition may have gone
                    self._held[partition] = copy
                    return
                await in_background(partial(self._copies.move, copy, FOLDER, folder, position=own), "warm")
                self._metrics.warm_takeovers.inc()
                log.warning(
                    "shard %d: its warm copy of checkpoint %d is in place; the log is read from offset %d",
                    partition,
                    copy.manifest.generation,
                    _offset(copy),
                )
        except ShardLocked as exc:  # the copy is found again at the next start, or fetched
            log.warning("%s", exc)
        except OSError as exc:
            raise DataDirError(folder, exc.strerror or type(exc).__name__) from exc
        finally:
            self._wanted.discard(partition)

    def _fits(self, copy: WarmCopy, models: Sequence[VectorModel]) -> bool:
        facts = copy.manifest.facts
        reason = misfit(
            copy.manifest,
            partition=facts.partition,
            partitions=self._partitions,
            models=models,
            topic_ids={LONG_TERM: self._topic_id()},
        )
        if reason is not None:
            log.warning("shard %d: its warm copy is passed over: %s", facts.partition, reason)
        return reason is None


def _offset(copy: WarmCopy) -> int:
    return copy.manifest.facts.positions[LONG_TERM].offset
