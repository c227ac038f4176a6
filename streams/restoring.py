"""A partition's state when it is assigned: the worker's own disk, else the newest checkpoint that fits, else the log.

A disk is as good as its position: what comes after it is read from the log. A checkpoint is taken where there is no
disk, where the log has no longer what the disk lacks, and where the disk is so far behind that reading the log takes
longer. It comes into a folder of its own, and whole into its place.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import os
import shutil
import threading
from collections.abc import Awaitable, Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import duckdb
import msgspec

from schemas.errors import (
    BrokerUnavailable,
    CheckpointError,
    CheckpointMismatch,
    DamagedCheckpoint,
    ShardError,
    StoreUnavailable,
)
from streams.background import in_background
from streams.backoff import Backoff
from streams.metrics import Metrics
from tables.catalog.database import connect
from tables.catalog.shard_info import read_info
from tables.checkpoints.checkpoints import Checkpoints
from tables.checkpoints.fitting import misfit
from tables.checkpoints.manifest import Manifest
from tables.paths import synced
from tables.shard.frozen import FOLDER, LONG_TERM
from tables.shard.reembedding import VectorModel

log = logging.getLogger(__name__)

#: A disk that lacks more records than that may be slower than a checkpoint: half a minute of embedding, or more.
FAR_BEHIND: Final = 20_000
#: So long a store is waited for where the log has it all, but for hours of embedding.
STORE_SECONDS: Final = 60.0
#: So long the windows' rows are waited for: their changelogs have it all.
WINDOWS_SECONDS: Final = 30.0
#: The folder of their files in a checkpoint.
WINDOWS: Final = "windows"
#: Between two attempts to reach the store, or the broker.
AGAIN: Final = Backoff(first=0.5, longest=10.0)

#: Told how many bytes are done, and how many there are.
Reached = Callable[[int, int], None]


class LogBounds(NamedTuple):
    """The offsets of a partition's oldest record and after its newest; the topic's id, "" where it is not known."""

    start: int
    end: int
    topic_id: str


class _Stopped(Exception):
    """The partition has gone on."""


class Restoring:
    """`bounds` asks the broker for the log; `begins` is told of a restore, and gives what is told how far it is."""

    def __init__(
        self,
        *,
        store: Checkpoints,
        folder: Path,
        partitions: int,
        bounds: Callable[[int], Awaitable[LogBounds]],
        metrics: Metrics,
        begins: Callable[[int], Reached] = lambda partition: lambda done, whole: None,
        patience: float = STORE_SECONDS,
    ) -> None:
        self._store, self._folder, self._partitions = store, folder, partitions
        self._bounds, self._metrics, self._begins, self._patience = bounds, metrics, begins, patience
        self._numbers = itertools.count()
        self._waiting: dict[int, str] = {}

    def _clean(self, partition: int, folder: Path) -> None:
        """Remove what a worker left that was killed while it restored; a disk that it had set aside comes back."""
        aside = self._aside(partition)
        if aside.exists() and not folder.exists():
            aside.rename(folder)
        for left in self._folder.glob(f"{partition}[-.]*"):
            shutil.rmtree(left, ignore_errors=True)

    def _aside(self, partition: int) -> Path:
        return self._folder / f"{partition}.former"

    def waiting(self) -> list[str]:
        """Why shards are not opened yet."""
        return list(self._waiting.values())

    async def bring(self, partition: int, folder: Path, models: Sequence[VectorModel]) -> None:
        """Have the nearest state in a shard's folder, of one of these models. Raises `ShardError`, `DataDirError`."""
        await in_background(partial(self._clean, partition, folder), "restore")
        own = await in_background(partial(position_of, folder / "catalog.duckdb"), "restore")
        bounds = await self._log_of(partition)
        whole = own is not None and bounds.start <= own
        if own is not None and whole and bounds.end - own <= FAR_BEHIND:
            self._metrics.restores.labels("disk").inc()
            return
        least = 0 if own is None else own + 1 + (FAR_BEHIND if whole else 0)
        try:
            found = await self._restored(partition, folder, models, bounds, least, patient=own is None)
        finally:
            self._waiting.pop(partition, None)
        self._metrics.restores.labels("checkpoint" if found else "log" if own is None else "disk").inc()

    async def bring_windows(self, partition: int, folder: Path) -> None:
        """Have the windows' rows of the newest checkpoint in a folder that is not there.

        Whether they are of the changelogs that there are, and not too old, is found out when these are read on; and
        what is wrong with a checkpoint is no more than time: the changelogs have it all.
        """
        try:
            async with asyncio.timeout(WINDOWS_SECONDS):
                await in_background(partial(self._windows, partition, folder), "restore")
        except (CheckpointError, OSError, TimeoutError) as exc:
            log.warning("windows of partition %d: read from their changelogs: %s", partition, exc or "no answer")

    def _windows(self, partition: int, folder: Path) -> None:
        if folder.exists():
            return
        for manifest in self._store.generations(partition):
            files = tuple(file for file in manifest.files if file.name.startswith(f"{WINDOWS}/"))
            if not files or manifest.facts.partitions != self._partitions:
                continue
            draft = self._folder / f"{partition}-{os.getpid()}-{next(self._numbers)}"
            try:
                self._store.restore(msgspec.structs.replace(manifest, files=files), draft)
                if not folder.exists():
                    _put(draft / WINDOWS, folder, draft / "aside")
                return
            except DamagedCheckpoint as exc:
                log.warning("windows of partition %d: %s", partition, exc)
            finally:
                shutil.rmtree(draft, ignore_errors=True)

    async def _log_of(self, partition: int) -> LogBounds:
        for attempt in itertools.count(1):
            try:
                return await self._bounds(partition)
            except (BrokerUnavailable, TimeoutError) as exc:
                log.info("shard %d: the log is not to be seen yet: %s", partition, exc)
                await asyncio.sleep(AGAIN.after(attempt))
        raise AssertionError

    async def _restored(
        self,
        partition: int,
        folder: Path,
        models: Sequence[VectorModel],
        bounds: LogBounds,
        least: int,
        *,
        patient: bool,
    ) -> bool:
        """Whether a checkpoint was found, at an offset of at least `least`, and is in its place."""
        now = asyncio.get_running_loop().time
        until = now() + self._patience
        unusable: str | None = None
        for attempt in itertools.count(1):
            try:
                numbers = await in_background(partial(self._store.numbers, partition), "restore")
                for number in numbers:
                    manifest, why = await self._fitting(partition, number, models, bounds, least)
                    unusable = unusable or why
                    if manifest is not None and await self._into_place(manifest, folder):
                        return True
                break
            except StoreUnavailable as exc:
                if not patient or (now() > until and not bounds.start):
                    log.warning("shard %d: without a checkpoint, from the disk and the log: %s", partition, exc)
                    return False
                self._waiting[partition] = f"shard {partition}: its checkpoint is not to be had yet: {exc}"
                log.warning("%s", self._waiting[partition])
                await asyncio.sleep(AGAIN.after(attempt))
        if patient and unusable is not None and bounds.start:
            raise ShardError(
                partition,
                f"the log begins at offset {bounds.start}, and its checkpoints cannot be used: {unusable}; set back "
                "what was changed, or put a state there with `siltstone checkpoint restore`",
            )
        return False

    async def _fitting(
        self, partition: int, number: int, models: Iterable[VectorModel], bounds: LogBounds, least: int
    ) -> tuple[Manifest | None, str | None]:
        """A generation that can be used here; else why not, where that is the settings' doing."""
        try:
            manifest = await in_background(partial(self._store.read, partition, number), "restore")
        except CheckpointMismatch as exc:
            log.warning("shard %d: checkpoint %d is passed over: %s", partition, number, exc.reason)
            return None, exc.reason
        except DamagedCheckpoint as exc:
            log.warning("shard %d: %s", partition, exc)
            return None, None
        if manifest is None:  # it was dropped just now
            return None, None
        reasons = [
            misfit(
                manifest,
                partition=partition,
                partitions=self._partitions,
                model=model.name,
                dimension=model.dimension,
                topic_ids={LONG_TERM: bounds.topic_id},
            )
            for model in models
        ]
        if None not in reasons:
            log.warning("shard %d: checkpoint %d is passed over: %s", partition, number, reasons[0])
            return None, reasons[0]
        offset = manifest.facts.positions[LONG_TERM].offset
        if offset > bounds.end:
            log.warning(
                "shard %d: checkpoint %d is passed over: the log ends at offset %d, before its %d",
                partition,
                number,
                bounds.end,
                offset,
            )
            return None, None
        return (manifest, None) if offset >= max(least, bounds.start) else (None, None)

    async def _into_place(self, manifest: Manifest, folder: Path) -> bool:
        """Whether it is whole, and in its place."""
        partition, gone = manifest.facts.partition, threading.Event()
        reached = self._begins(partition)
        offset = manifest.facts.positions[LONG_TERM].offset
        log.warning(
            "shard %d: checkpoint %d is restored, %d bytes; the log is read from offset %d",
            partition,
            manifest.generation,
            manifest.whole,
            offset,
        )

        def progress(done: int, whole: int) -> None:
            if gone.is_set():
                raise _Stopped
            reached(done, whole)

        draft = self._folder / f"{partition}-{os.getpid()}-{next(self._numbers)}"

        def work() -> None:
            try:
                mine = tuple(file for file in manifest.files if file.name.startswith(f"{FOLDER}/"))
                self._store.restore(msgspec.structs.replace(manifest, files=mine), draft, progress)
                if gone.is_set():
                    raise _Stopped
                _put(draft / FOLDER, folder, self._aside(partition))
            finally:
                shutil.rmtree(draft, ignore_errors=True)

        try:
            await in_background(work, "restore")
        except DamagedCheckpoint as exc:
            log.warning("shard %d: %s", partition, exc)
            return False
        except asyncio.CancelledError:
            gone.set()
            raise
        return True


def position_of(catalog: Path) -> int | None:
    """The position of the shard that is on the disk; None where none is.

    One that another process has open is as near as any: it is waited for.
    """
    if not catalog.exists():
        return None
    try:
        with contextlib.closing(connect(catalog, read_only=True)) as db:
            return read_info(db).position or 0
    except duckdb.Error as exc:
        log.debug("%s: %s", catalog, exc)
        return 1 << 62


def _put(restored: Path, place: Path, aside: Path) -> None:
    """A restored folder in the place of what is there, if anything is."""
    place.parent.mkdir(parents=True, exist_ok=True)
    if place.exists():
        place.rename(aside)
    restored.rename(place)
    synced(place.parent)
    shutil.rmtree(aside, ignore_errors=True)
