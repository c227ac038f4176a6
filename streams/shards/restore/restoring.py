"""Restores a partition's state when it is assigned: from the disk, else the newest fitting checkpoint, else the log.

Records that the state on the disk lacks are read from the log. A checkpoint is restored if there is no state on the
disk, if the log no longer has the records that the disk lacks, or if the disk is so far behind that reading the log
takes longer. The checkpoint is fetched into a separate folder, and moved into place when it is complete.

If the log no longer has the records that the disk lacks, the shard is opened only from a checkpoint after which the
log has all records. If the store is unavailable, the worker waits for it. If all checkpoints are damaged, too old or
made with other settings, the worker stops. Otherwise it would take new checkpoints of a shard without these records,
and they would replace the complete checkpoints. Only if the store has no checkpoint of the partition, the shard is
opened without these records.

If the state on the disk is damaged, a checkpoint replaces it if the log has all records after the checkpoint. Without
such a checkpoint, the worker stops, because a backup may be newer than the log's first record.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from schemas.errors import (
    BrokerUnavailable,
    CheckpointMismatch,
    DamagedCheckpoint,
    DamagedShard,
    DataDirError,
    ShardError,
    ShardLocked,
    StoreUnavailable,
)
from streams.runtime.background import in_background, in_background_to_the_end
from streams.runtime.backoff import Backoff
from streams.telemetry.metrics import Metrics
from tables.checkpoints.checkpoints import Checkpoints
from tables.checkpoints.drafts import Draft, drop_left
from tables.checkpoints.fitting import misfit
from tables.checkpoints.manifest import Manifest
from tables.checkpoints.replacing import position_of, replace_shard, take_up
from tables.memories.catalog.reembedding import VectorModel
from tables.memories.frozen import FOLDER, LONG_TERM

log = logging.getLogger(__name__)

#: If the disk lacks more records than this, a checkpoint may be faster than the log. Embedding this number of records
#: takes half a minute or more.
FAR_BEHIND: Final = 20_000
#: Seconds to wait for an unavailable checkpoint store if the log also has every record. Without the checkpoint, the
#: worker would need hours to embed all these records.
STORE_SECONDS: Final = 60.0
#: The pauses between attempts to reach the checkpoint store or the broker.
AGAIN: Final = Backoff(first=0.5, longest=10.0)

#: Called with the number of restored bytes, and the total number of bytes.
Reached = Callable[[int, int], None]


class LogBounds(NamedTuple):
    """The offset of a partition's oldest record (`start`), and the offset after its newest record (`end`).

    `topic_id` is "" if it is unknown.
    """

    start: int
    end: int
    topic_id: str


class Stopped(Exception):
    """Ends a restore, because the partition has moved or the time limit is over."""


class _Unusable(Exception):
    """The checkpoint cannot be used. The text is the reason."""


class _TooOld(_Unusable):
    """The checkpoint's offset is lower than required."""


class _Wanted(NamedTuple):
    """A request to restore the state of a partition into `folder`, with an offset of at least `least`.

    `own` is the offset of the state that is in `folder` now, or None if the folder has no state. `damaged` is True if
    this state cannot be used.
    """

    partition: int
    folder: Path
    own: int | None
    bounds: LogBounds
    least: int
    damaged: bool


class Restoring:
    """Restores the shards of assigned partitions.

    `bounds` asks the broker for the bounds of a partition's log. `begins` records that a restore begins, and returns
    the callback for its progress. `is_member` asks the group whether this worker still belongs to it. If
    `accept_loss` is True, the newest state is used even if the log starts after it, so that records are lost.
    `patience` is the time to wait for an unavailable store, in seconds (see `STORE_SECONDS`).
    """

    def __init__(
        self,
        *,
        store: Checkpoints,
        folder: Path,
        partitions: int,
        bounds: Callable[[int], Awaitable[LogBounds]],
        is_member: Callable[[], Awaitable[bool]],
        metrics: Metrics,
        begins: Callable[[int], Reached] = lambda partition: lambda done, whole: None,
        accept_loss: bool = False,
        patience: float = STORE_SECONDS,
    ) -> None:
        self._store, self._folder, self._partitions = store, folder, partitions
        self._bounds, self._is_member, self._metrics, self._begins = bounds, is_member, metrics, begins
        self._accept_loss, self._patience = accept_loss, patience
        self._waiting: dict[int, str] = {}

    def _clean(self, partition: int, folder: Path) -> None:
        """Clean up a restore in which a worker was killed: put back the folder set aside, and remove drafts."""
        try:
            take_up(partition, folder)
        except OSError as exc:
            raise DataDirError(folder, exc.strerror or type(exc).__name__) from exc
        drop_left(self._folder, str(partition))

    def waiting(self) -> list[str]:
        """The reasons why shards are not open yet."""
        return list(self._waiting.values())

    async def bring(
        self, partition: int, folder: Path, models: Sequence[VectorModel], damaged: DamagedShard | None = None
    ) -> None:
        """Put the newest usable state of a partition into the folder of its shard.

        The vectors of a usable state come from one of the given models. `damaged` is the error of an attempt to open
        the state that is in the folder. It is raised if no checkpoint can replace this state. Raises `ShardError` and
        `DataDirError`.
        """
        for attempt in itertools.count(1):
            await in_background_to_the_end(partial(self._clean, partition, folder), "restore")
            try:
                source = await self._brought(partition, folder, models, damaged)
            except ShardLocked as exc:  # another worker has used the folder, which may now have the newest state
                log.warning("%s", exc)
                damaged = None
                await asyncio.sleep(AGAIN.after(attempt))
            else:
                self._metrics.restores.labels(source).inc()
                return
            finally:
                self._waiting.pop(partition, None)

    async def _brought(
        self, partition: int, folder: Path, models: Sequence[VectorModel], damaged: DamagedShard | None
    ) -> str:
        """Put the newest usable state into the folder, and return its source: "disk", "checkpoint" or "log"."""
        own = await in_background(partial(position_of, folder), "restore")
        bounds = await self._log_of(partition)
        whole = bounds.start <= (own or 0)
        if damaged is None and own is not None and whole and bounds.end - own <= FAR_BEHIND:
            return "disk"
        least = 0 if own is None or damaged is not None else own + 1 + (FAR_BEHIND if whole else 0)
        least = least if self._accept_loss else max(least, bounds.start)
        wanted = _Wanted(partition, folder, own, bounds, least, damaged is not None)
        restored = await self._restored(wanted, models, patient=own is None or not whole or wanted.damaged)
        if restored is None and damaged is not None:
            raise damaged
        reached = own if restored is None else restored
        if reached is not None and reached < bounds.start:
            log.warning(
                "shard %d: the records at offsets %d to %d of the log are lost", partition, reached, bounds.start - 1
            )
        return "checkpoint" if restored is not None else "log" if own is None else "disk"

    async def _log_of(self, partition: int) -> LogBounds:
        for attempt in itertools.count(1):
            try:
                return await self._bounds(partition)
            except (BrokerUnavailable, TimeoutError) as exc:
                log.info("shard %d: the log cannot be read yet: %s", partition, exc)
                await asyncio.sleep(AGAIN.after(attempt))
        raise AssertionError

    async def _restored(self, wanted: _Wanted, models: Sequence[VectorModel], *, patient: bool) -> int | None:
        """Put a fitting checkpoint in place. Return its offset, or None if no checkpoint fits.

        If the store is unavailable, return None, unless `patient`: then wait for the store, without a time limit if
        the log has lost its first records or the state on the disk is damaged, otherwise for at most `patience`
        seconds.
        """
        partition, bounds = wanted.partition, wanted.bounds
        until = time.monotonic() + self._patience
        for attempt in itertools.count(1):
            unusable: list[str] = []
            try:
                for number in await in_background(partial(self._store.numbers, partition), "restore"):
                    try:
                        manifest = await self._fitting(wanted, number, models)
                        if manifest is not None:
                            return await self._into_place(manifest, wanted)
                    except _Unusable as exc:
                        level = logging.INFO if isinstance(exc, _TooOld) else logging.WARNING
                        log.log(level, "shard %d: checkpoint %d is skipped: %s", partition, number, exc)
                        unusable.append(str(exc))
                break
            except StoreUnavailable as exc:
                if not patient or (time.monotonic() > until and not bounds.start and not wanted.damaged):
                    log.warning(
                        "shard %d: it opens without a checkpoint, from the disk and the log: %s", partition, exc
                    )
                    return None
                self._waiting[partition] = f"shard {partition}: its checkpoint cannot be fetched yet: {exc}"
                log.warning("%s", self._waiting[partition])
                await asyncio.sleep(AGAIN.after(attempt))
        if patient and unusable and bounds.start and not self._accept_loss:
            raise ShardError(
                partition,
                f"the log begins at offset {bounds.start}, and its checkpoints cannot be used: {unusable[0]}; undo "
                "the change, or restore a state with `siltstone checkpoint restore`; "
                "checkpoints.accept_loss=true starts without the lost records",
            )
        return None

    async def _fitting(self, wanted: _Wanted, number: int, models: Sequence[VectorModel]) -> Manifest | None:
        """Return the manifest of a usable generation, or None if the generation was just removed.

        Raises `_Unusable` if the checkpoint cannot be used.
        """
        try:
            manifest = await in_background(partial(self._store.read, wanted.partition, number), "restore")
        except CheckpointMismatch as exc:
            raise _Unusable(exc.reason) from exc
        except DamagedCheckpoint as exc:
            raise _Unusable(f"damaged: {exc.what}") from exc
        if manifest is None:
            return None
        reason = misfit(
            manifest,
            partition=wanted.partition,
            partitions=self._partitions,
            models=models,
            topic_ids={LONG_TERM: wanted.bounds.topic_id},
        )
        if reason is not None:
            raise _Unusable(reason)
        offset = manifest.facts.positions[LONG_TERM].offset
        if offset > wanted.bounds.end:
            raise _Unusable(f"the log ends at offset {wanted.bounds.end}, before its offset {offset}")
        if offset < wanted.least:
            raise _TooOld(f"it ends at offset {offset}, and at least {wanted.least} is needed")
        return manifest

    async def _into_place(self, manifest: Manifest, wanted: _Wanted) -> int:
        """Put the checkpoint in place, and return its offset.

        Raises `_Unusable` if the checkpoint is damaged, and `ShardLocked` if another process uses the shard's folder.
        """
        partition, gone = wanted.partition, threading.Event()
        offset = manifest.facts.positions[LONG_TERM].offset
        log.warning(
            "shard %d: checkpoint %d is restored, %d bytes; the log is read from offset %d",
            partition,
            manifest.generation,
            manifest.whole,
            offset,
        )
        mine = tuple(file for file in manifest.files if file.name.startswith(f"{FOLDER}/"))
        progress = told_until(gone, self._begins(partition))

        def fetch() -> Draft:
            draft = Draft(self._folder, partition)
            try:
                self._store.restore(msgspec.structs.replace(manifest, files=mine), draft.files, progress)
                if gone.is_set():
                    raise Stopped
            except BaseException:
                draft.drop()
                raise
            return draft

        def put() -> None:
            try:
                if not gone.is_set():
                    restored, place = draft.files / FOLDER, wanted.folder
                    replace_shard(partition, restored, place, position=wanted.own, keep_damaged=wanted.damaged)
            finally:
                draft.drop()

        try:
            draft = await in_background(fetch, "restore")
            try:
                await self._still_ours()
            except BaseException:
                draft.drop()
                raise
            await in_background_to_the_end(put, "restore")
        except DamagedCheckpoint as exc:
            raise _Unusable(f"damaged: {exc.what}") from exc
        except OSError as exc:
            raise DataDirError(wanted.folder, exc.strerror or type(exc).__name__) from exc
        except asyncio.CancelledError:
            gone.set()
            raise
        return offset

    async def _still_ours(self) -> None:
        """Wait until the group confirms that this worker is a member, because only a member still owns the partition.

        If the partition has moved, this call is cancelled.
        """
        for attempt in itertools.count(1):
            if await self._is_member():
                return
            await asyncio.sleep(AGAIN.after(attempt))


def told_until(gone: threading.Event, reached: Reached = lambda done, whole: None) -> Reached:
    """Return a progress callback that calls `reached`, and raises `Stopped` as soon as `gone` is set."""

    def progress(done: int, whole: int) -> None:
        if gone.is_set():
            raise Stopped
        reached(done, whole)

    return progress
