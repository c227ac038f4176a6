"""Warm copies of other workers' partitions: refreshed from the newest checkpoints, and put in place on assignment.

The group's leader decides which worker keeps which copies (`streams/kafka/faust/placing.py`): these are the worker's
duties. If a worker is assigned a partition of which it has a copy, it moves the copy into place, and reads only the
newest records of the log. A copy that is no longer a duty of the worker is removed.
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
from streams.runtime.background import in_background, in_background_to_the_end
from streams.telemetry.metrics import Metrics
from tables.checkpoints.fitting import misfit
from tables.checkpoints.replacing import position_of
from tables.checkpoints.warm import WarmCopies, WarmCopy
from tables.memories.catalog.reembedding import VectorModel
from tables.memories.frozen import FOLDER, LONG_TERM

log = logging.getLogger(__name__)

#: Seconds between two searches for newer checkpoints.
LOOK_SECONDS: Final = 10.0
#: The number of calls of `tick` for which a copy is kept after it stops being a duty. Duties change a moment before
#: partitions are assigned, so this worker may soon need the copy.
SPARED: Final = 2


class _Wanted(Exception):
    """Ends the refresh of a copy whose partition is now assigned to this worker, because `bring` needs the copy."""


class WarmJob:
    """Keeps the warm copies on this worker's disk.

    `ours` returns this worker's partitions. `topic_id` returns the id of the current log topic. `is_member` asks the
    group whether this worker still belongs to it.
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
        """Return the offset in `long-term` of each warm copy, by partition. Safe from any thread."""
        return {partition: _offset(copy) for partition, copy in list(self._held.items())}

    def told(self, duties: frozenset[int]) -> None:
        """Keep copies of these partitions from now on. Safe from any thread."""
        self._duties = duties

    async def tick(self) -> None:
        """Refresh warm copies from the newest checkpoints, and remove copies that are no duty of this worker."""
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
                    except OSError as exc:  # the next start finds the copy again
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
                log.info("shard %d: this disk has a warm copy of checkpoint %d", partition, copy.manifest.generation)

    async def bring(
        self, partition: int, folder: Path, models: Sequence[VectorModel], *, damaged: bool = False
    ) -> bool:
        """Move the copy of a newly assigned partition into the folder of its shard, if the copy is newer.

        If the shard in the folder is `damaged`, any copy counts as newer. Return True if a copy was moved.
        """
        if partition not in self._held:
            return False
        self._wanted.add(partition)
        try:
            async with self._locks[partition]:
                copy = self._held.pop(partition, None)
                if copy is None:
                    return False
                own = await in_background(partial(position_of, folder), "warm")
                older = own is not None and own >= _offset(copy) and not damaged
                if older or not self._fits(copy, models):
                    await in_background(partial(self._copies.drop, partition), "warm")
                    return False
                if not await self._is_member():  # the partition may have moved
                    self._held[partition] = copy
                    return False
                move = partial(self._copies.move, copy, FOLDER, folder, position=own, keep_damaged=damaged)
                await in_background_to_the_end(move, "warm")
                self._metrics.warm_takeovers.inc()
                log.warning(
                    "shard %d: its warm copy of checkpoint %d is in place; the log is read from offset %d",
                    partition,
                    copy.manifest.generation,
                    _offset(copy),
                )
                return True
        except ShardLocked as exc:  # the next start finds the copy again, or fetches it
            log.warning("%s", exc)
            return False
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
            log.warning("shard %d: its warm copy is skipped: %s", facts.partition, reason)
        return reason is None


def _offset(copy: WarmCopy) -> int:
    return copy.manifest.facts.positions[LONG_TERM].offset
