"""Restores the windows' rows of newly assigned partitions from their newest checkpoints, within a time limit.

This only saves time. Without it, the worker reads the changelogs, which have every row, from the start.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from schemas.errors import CheckpointError, DamagedCheckpoint, DataDirError, StoreUnavailable
from streams.runtime.background import in_background
from streams.shards.restore.restoring import Stopped, told_until
from tables.checkpoints.checkpoints import Checkpoints
from tables.checkpoints.drafts import Draft
from tables.windows.partition_store import holds_rows, place_rows

log = logging.getLogger(__name__)

#: The maximum number of seconds to restore the windows of all newly assigned partitions together.
WINDOWS_SECONDS: Final = 30.0
#: The number of seconds after a failure for which no request is sent to the checkpoint store.
STORE_AWAY_SECONDS: Final = 60.0
#: The folder of the windows' files in a checkpoint.
WINDOWS: Final = "windows"


class _Over:
    """A flag that is set at the end of a time limit. `set` first waits for the end of a running `in_time` block."""

    def __init__(self) -> None:
        self.event, self._lock = threading.Event(), threading.Lock()

    def set(self) -> None:
        with self._lock:
            self.event.set()

    @contextlib.contextmanager
    def in_time(self) -> Iterator[None]:
        """Run the block if the time limit is not over. Otherwise raise `Stopped`."""
        with self._lock:
            if self.event.is_set():
                raise Stopped
            yield


class RestoringWindows:
    """Restores windows. `known_away` returns True while the store does not answer the worker's checkpoint job."""

    def __init__(
        self, *, store: Checkpoints, folder: Path, partitions: int, known_away: Callable[[], bool] = lambda: False
    ) -> None:
        self._store, self._folder, self._partitions, self._known_away = store, folder, partitions, known_away
        self._not_before = 0.0

    async def bring(self, folders: Mapping[int, Path]) -> None:
        """Restore the window rows of the newest checkpoints into those of the partitions' folders that have no rows.

        Later, when the changelogs are read, the rows are discarded if they do not fit the changelogs or are too old.
        So a bad checkpoint only costs time.
        """
        if not folders or self._known_away() or time.monotonic() < self._not_before:
            return
        over = _Over()
        try:
            async with asyncio.timeout(WINDOWS_SECONDS):
                await asyncio.gather(*(self._of_partition(*one, over) for one in folders.items()))
        except TimeoutError:
            self._away(f"no answer from {self._store.url}")
        finally:
            over.set()

    async def _of_partition(self, partition: int, folder: Path, over: _Over) -> None:
        try:
            await in_background(partial(self._in_place, partition, folder, over), "restore")
        except StoreUnavailable as exc:
            self._away(str(exc))
        except (CheckpointError, DataDirError, OSError) as exc:
            log.warning("windows of partition %d are read from their changelogs: %s", partition, exc)

    def _away(self, why: str) -> None:
        if time.monotonic() >= self._not_before:
            log.warning("windows without a checkpoint are read from their changelogs: %s", why)
        self._not_before = time.monotonic() + STORE_AWAY_SECONDS

    def _in_place(self, partition: int, folder: Path, over: _Over) -> None:
        """Restore the window rows of one partition.

        When `over` is set, the worker reads the changelogs into the folder, so this method must not change it any
        more.
        """
        if holds_rows(folder):
            return
        for manifest in self._store.generations(partition):
            files = tuple(file for file in manifest.files if file.name.startswith(f"{WINDOWS}/"))
            if not files or manifest.facts.partitions != self._partitions:
                continue
            draft = Draft(self._folder, partition)
            try:
                mine, until = msgspec.structs.replace(manifest, files=files), told_until(over.event)
                self._store.restore(mine, draft.files, until)
                with over.in_time():
                    place_rows(draft.files / WINDOWS, folder)
                return
            except Stopped:
                return
            except DamagedCheckpoint as exc:
                log.warning("windows of partition %d: %s", partition, exc)
            finally:
                draft.drop()
