"""Takes checkpoints of changed partitions: on a timer, when a partition leaves this worker, and at an orderly stop.

While a low-priority thread reads the files of a shard, they do not change, and the shard stays in use. If data is
forgotten meanwhile, this checkpoint is given up, and the next attempt starts over. If the object store is
unavailable, the worker goes on without checkpoints. It tries the store again after pauses that double, and `/readyz`
shows a warning. Until the store answers, new state is only on the disk and in the log.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from functools import partial
from typing import Final, Literal, NamedTuple

import duckdb

from schemas.errors import (
    CheckpointError,
    CheckpointMismatch,
    Fenced,
    ShardNotHere,
    SiltstoneError,
    SnapshotChanged,
    StoreFull,
    StoreMissing,
    StoreRefused,
    StoreUnavailable,
)
from schemas.times import now_ms
from streams.runtime.background import in_background
from streams.runtime.backoff import Backoff
from streams.shards.owned import CallShard, OwnedShards
from streams.shards.restore.accompanying_rows import AccompanyingRows, Copy, Nothing
from streams.telemetry.metrics import Metrics
from tables.checkpoints.checkpoints import Checkpoints, Taken
from tables.checkpoints.snapshot import Facts, Position, Snapshot
from tables.memories.frozen import LONG_TERM, Frozen
from tables.memories.shard import Shard

log = logging.getLogger(__name__)

#: The maximum number of seconds for which a shard's files are kept unchanged for a checkpoint. After this time, the
#: checkpoint is given up: meanwhile DuckDB's write-ahead log grows, and it must be read when the catalog is next
#: opened.
HOLD_SECONDS: Final = 1_800.0
#: The maximum number of seconds for the last checkpoint of a partition that leaves this worker, and for the last
#: checkpoints of all partitions together when the worker stops.
LEAVING_SECONDS: Final = 5.0
STOPPING_SECONDS: Final = 10.0
#: The minimum number of seconds between two removals of old generations of a partition that does not change.
EXPIRE_SECONDS: Final = 3_600.0
#: The pauses between attempts to reach a checkpoint store that did not answer.
STORE_AWAY: Final = Backoff(first=5.0, longest=300.0)

Outcome = Literal["taken", "unchanged", "given_up", "fenced", "failed"]


class Done(NamedTuple):
    """The outcome of an attempt to take a checkpoint of one partition.

    If no checkpoint was taken, `why` is the reason. It contains no path of this machine.
    """

    partition: int
    outcome: Outcome
    taken: Taken | None = None
    why: str = ""


class CheckpointJob:
    """Takes checkpoints, one at a time.

    `topic_id` returns the id of the current log topic ("" if the broker has no ids). `generation` returns the
    generation of the consumer group. `is_member` asks the group whether this worker still belongs to it. While
    `caught_up` returns False for a partition, no checkpoint of this partition is taken. `beside` copies the window
    rows that are stored with the shard.
    """

    def __init__(
        self,
        *,
        store: Checkpoints,
        shards: OwnedShards,
        metrics: Metrics,
        partitions: int,
        topic_id: Callable[[], str],
        generation: Callable[[], int],
        is_member: Callable[[], Awaitable[bool]],
        caught_up: Callable[[int], bool],
        beside: AccompanyingRows | None = None,
        now: Callable[[], int] = now_ms,
        expire_seconds: float = EXPIRE_SECONDS,
    ) -> None:
        self._expire_seconds = expire_seconds
        self._store, self._shards, self._metrics, self._partitions = store, shards, metrics, partitions
        self._topic_id, self._generation, self._is_member = topic_id, generation, is_member
        self._caught_up, self._beside, self._now = caught_up, beside or Nothing(), now
        self._one_at_a_time = asyncio.Lock()
        self._epochs: dict[int, int] = {}
        #: By partition: the number of changes of the shard, and the number of changes of its window rows, that the
        #: newest checkpoint contains.
        self._taken: dict[int, tuple[int, int | None]] = {}
        self._expired: dict[int, float] = {}
        #: By partition: whether the newest checkpoint may still contain forgotten bytes.
        self._in_pages: dict[int, bool] = {}
        self._fenced: dict[int, Fenced] = {}
        self._away: StoreUnavailable | None = None
        self._attempts, self._not_before, self._closing = 0, 0.0, False

    def own(self, partitions: Collection[int]) -> None:
        """Record that this worker owns these partitions, with the group's present generation as their epoch."""
        self._epochs |= dict.fromkeys(partitions, self._generation())
        self._fenced.clear()

    def warnings(self) -> list[str]:
        """Return the reasons why no checkpoints are taken now. They do not stop the worker."""
        found = [] if self._away is None else [f"no checkpoints for now: {self._away}"]
        return found + [f"no checkpoints: {fenced}" for fenced in self._fenced.values()]

    def store_is_away(self) -> bool:
        """True if the store did not answer the last request, and the pause before the next request has not ended."""
        return self._away is not None and time.monotonic() < self._not_before

    async def tick(self) -> None:
        """Take a checkpoint of each partition that has changed.

        During the pause after a failed request to the store, and while another checkpoint is being taken, do nothing.
        """
        if self._one_at_a_time.locked() or time.monotonic() < self._not_before:
            return
        for partition in self._shards.partitions():
            await self.take(partition)
            if self._away is not None:
                return

    async def now(self) -> list[Done]:
        """Take a checkpoint of each owned partition that has changed, without waiting for the timer."""
        return [await self.take(partition) for partition in self._shards.partitions()]

    async def last(self) -> None:
        """Take the last checkpoints before the worker stops, within `STOPPING_SECONDS`.

        After this call, no last checkpoints are taken of partitions that leave the worker.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(STOPPING_SECONDS):
                if time.monotonic() >= self._not_before:
                    await self.now()
        self._closing = True

    async def leaving(self, partition: int, call: CallShard) -> None:
        """Take a last checkpoint of a partition that moves to another worker, before its shard is closed."""
        try:
            if self._closing or self._away is not None or partition in self._fenced:
                return
            async with asyncio.timeout(LEAVING_SECONDS):
                await self._take(partition, call, mine=False)
        except TimeoutError:
            log.info("shard %d: it leaves without a last checkpoint, which would take too long", partition)
        finally:
            self._taken.pop(partition, None)
            with suppress(KeyError):
                self._metrics.checkpoint_at.remove(str(partition))

    async def take(self, partition: int) -> Done:
        """Take a checkpoint of an owned partition if it has changed. Otherwise the result has the reason."""
        if fenced := self._fenced.get(partition):
            return Done(partition, "fenced", why=str(fenced))
        if not self._caught_up(partition):
            return Done(partition, "given_up", why="it is not complete yet")
        return await self._take(partition, partial(self._shards.call, partition), mine=True)

    async def _take(self, partition: int, call: CallShard, *, mine: bool) -> Done:
        try:
            async with self._one_at_a_time:
                done = await self._taken_once(partition, call, mine)
        except ShardNotHere as exc:
            return Done(partition, "given_up", why=str(exc))
        except (SiltstoneError, OSError, duckdb.Error) as exc:
            return self._failed(partition, exc, mine)
        if done.outcome != "unchanged":
            self._metrics.checkpoints.labels(done.outcome).inc()
            self._answered()
        return done

    def _failed(self, partition: int, exc: Exception, mine: bool) -> Done:
        self._metrics.checkpoints.labels(reason_of(exc)).inc()
        if isinstance(exc, Fenced):
            if mine:
                self._fenced[partition] = exc
            log.warning("shard %d: no checkpoints until it is reassigned: %s", partition, exc)
            return Done(partition, "fenced", why=str(exc))
        if isinstance(exc, StoreUnavailable):
            self._attempts += 1
            self._not_before = time.monotonic() + STORE_AWAY.after(self._attempts)
            if self._away is None:
                log.warning("no checkpoints for now; the worker goes on without: %s", exc)
            self._away = exc
        else:
            log.warning("shard %d: no checkpoint was taken: %s", partition, exc)
        why = str(exc) if isinstance(exc, SiltstoneError) else f"{type(exc).__name__}: the worker's log says more"
        return Done(partition, "failed", why=why)

    def _answered(self) -> None:
        if self._away is not None:
            log.warning("the checkpoints' store answers again")
        self._away, self._attempts, self._not_before = None, 0, 0.0

    async def _taken_once(self, partition: int, call: CallShard, mine: bool) -> Done:
        if await self._is_unchanged(partition, call) and not (mine and await self._is_overdue(partition)):
            if mine and time.monotonic() >= self._expired.get(partition, 0.0) + self._expire_seconds:
                await self._expire(partition)
            return Done(partition, "unchanged")
        epoch = self._epochs.get(partition, 0)
        try:
            return await self._kept(partition, call, epoch)
        except Fenced as exc:
            # If a consumer group was deleted, its generations start again at the lowest number. A worker that is a
            # member of the group now is the newest owner of the partition, so it needs a higher epoch than all
            # earlier owners.
            if not mine or exc.newer < epoch or not await self._is_member():
                raise
            self._epochs[partition] = exc.newer + max(1, epoch)
            log.info("shard %d: the group's generations have started over: %s", partition, exc)
            return await self._kept(partition, call, self._epochs[partition])

    async def _is_overdue(self, partition: int) -> bool:
        """True if an unchanged partition needs a checkpoint, because packs in the store have forgotten bytes."""
        return await in_background(partial(self._store.overdue, partition), "checkpoint")

    async def _is_unchanged(self, partition: int, call: CallShard) -> bool:
        changes: int = await call(_changes)
        beside = self._beside.changes(partition)
        if partition not in self._taken:
            newest = await in_background(partial(self._store.newest, partition), "checkpoint")
            if newest is None:
                return False
            self._show(partition, newest.facts.at)
            position = newest.facts.positions.get(LONG_TERM)
            here = Position(self._topic_id(), await call(Shard.position))
            if position == here and not self._store.is_damaged(newest):
                self._taken[partition] = changes, newest.facts.windows or None
                self._in_pages[partition] = newest.facts.in_pages
        if self._in_pages.get(partition) and not await call(_in_pages):
            return False  # the catalog has been rewritten without the forgotten bytes since that checkpoint
        if partition not in self._taken:
            return False
        taken, taken_beside = self._taken[partition]
        return changes == taken and (beside is None or beside == taken_beside)

    async def _kept(self, partition: int, call: CallShard, epoch: int) -> Done:
        beside_changes = self._beside.changes(partition)
        beside = await self._beside.copy(partition)
        try:
            frozen = await call(Shard.freeze)
            try:
                facts = self._facts(partition, frozen, epoch, beside)
                files = [*frozen.files, *(beside.files if beside is not None else ())]
                taken = await self._read(Snapshot(facts, files), frozen)
            finally:
                frozen.held.give_up()
                with suppress(ShardNotHere):
                    await asyncio.shield(call(Shard.thaw, frozen))
        finally:
            if beside is not None:
                await beside.close()
        if taken is None:
            log.info("shard %d: its checkpoint was given up and starts over: data was forgotten meanwhile", partition)
            return Done(partition, "given_up", why="data was forgotten meanwhile, or it took too long")
        self._taken[partition] = frozen.changes, beside_changes if beside is None else beside.changes
        self._in_pages[partition] = frozen.in_pages
        self._metrics.checkpoint_bytes.inc(taken.uploaded)
        self._show(partition, facts.at)
        log.info(
            "shard %d: checkpoint %d at offset %d: %d of %d bytes were uploaded",
            partition,
            taken.generation,
            frozen.position,
            taken.uploaded,
            taken.whole,
        )
        await self._expire(partition)
        return Done(partition, "taken", taken)

    async def _expire(self, partition: int) -> None:
        """Remove generations that are too old or too many. If this fails, the next run removes them."""
        self._expired[partition] = time.monotonic()
        try:
            await in_background(partial(self._store.expire, partition), "checkpoint", low_priority=True)
        except CheckpointError as exc:
            self._metrics.checkpoints.labels("not_expired").inc()
            log.warning("shard %d: older checkpoints stay for now: %s", partition, exc)

    def _facts(self, partition: int, frozen: Frozen, epoch: int, beside: Copy | None) -> Facts:
        positions = {LONG_TERM: Position(self._topic_id(), frozen.position)}
        return Facts(
            partition=partition,
            partitions=self._partitions,
            model=frozen.model.name,
            dimension=frozen.model.dimension,
            at=self._now(),
            epoch=epoch,
            positions={**positions, **(beside.positions if beside is not None else {})},
            in_pages=frozen.in_pages or (beside is not None and beside.in_files),
            windows=0 if beside is None else beside.changes,
        )

    async def _read(self, snapshot: Snapshot, frozen: Frozen) -> Taken | None:
        until = time.monotonic() + HOLD_SECONDS

        def stop() -> bool:
            return frozen.held.broken or time.monotonic() > until

        try:
            return await in_background(partial(self._store.take, snapshot, stop), "checkpoint", low_priority=True)
        except (OSError, SnapshotChanged):
            if frozen.held.broken:  # data was forgotten, which replaced a file
                return None
            raise

    def _show(self, partition: int, at: int) -> None:
        self._metrics.checkpoint_at.labels(str(partition)).set(at / 1000)


def _in_pages(shard: Shard) -> bool:
    return shard.in_pages


def _changes(shard: Shard) -> int:
    return shard.changes


def reason_of(exc: Exception) -> str:
    """The label of a failure in the metric of checkpoints."""
    kinds: list[tuple[type[Exception], str]] = [
        (Fenced, "fenced"),
        (StoreFull, "store_full"),
        (StoreRefused, "store_refused"),
        (StoreMissing, "store_missing"),
        (StoreUnavailable, "store_away"),
        (CheckpointMismatch, "mismatch"),
        (SnapshotChanged, "changed"),
    ]
    return next((reason for kind, reason in kinds if isinstance(exc, kind)), "failed")
