"""Finds the shards of a data directory, for commands that work on the shards' files without a worker."""

from __future__ import annotations

import time
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from schemas.errors import DataDirError, ShardError, ShardLocked
from streams.doctor.data import numbered
from streams.doors.cli.process import write_as_let_in
from tables.database.inspection import Inspection, catalogs, inspect_catalog


class RowProgress(Protocol):
    """A function that shows progress: the number of finished rows, the number of all rows, and a remark (`note`)."""

    def __call__(self, done: int, total: int, note: str = "") -> None: ...


@dataclass(frozen=True, slots=True)
class ShardFiles:
    """The shards of a data directory, by partition. `paths` has the catalog files of all shards.

    `free` has descriptions of the shards that no other process has open. `held` has a text for each shard that
    another process has open. The text names this process.
    """

    paths: dict[int, Path]
    free: dict[int, Inspection]
    held: dict[int, str]

    @property
    def holders(self) -> str:
        """A text with the shards that other processes have open, such as `shards 0, 1: process 12 has it open`."""
        return f"{numbered(sorted(self.held))}: {'; '.join(sorted(set(self.held.values())))}"


def shard_files(data: Path, partitions: Collection[int] = ()) -> ShardFiles:
    """Return the shards of these partitions, or all shards if no partition is given.

    Raises `DataDirError` if the directory has no shards, and `ShardError` if a shard is missing or cannot be read.
    """
    write_as_let_in(data)
    paths = catalogs(data)
    if not paths:
        raise DataDirError(data, "there are no shards in it")
    for partition in partitions:
        if partition not in paths:
            raise ShardError(partition, f"there is none in {data}: it has {numbered(sorted(paths))}")
    files = ShardFiles({p: path for p, path in paths.items() if not partitions or p in partitions}, {}, {})
    for partition, path in files.paths.items():
        try:
            files.free[partition] = inspect_catalog(partition, path)
        except ShardLocked as exc:
            files.held[partition] = str(exc).partition(": ")[2]
    return files


class RowsBar:
    """Progress bars on standard error, one after the other, with the number and the rate of finished rows.

    with RowsBar() as bar:
        work(tell=bar.of("shard 3"))       # tell(done, total)
    """

    def __init__(self) -> None:
        console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
            console=console,
            transient=True,
            disable=not console.is_terminal,  # otherwise rich would print an empty line
        )

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def of(self, name: str) -> RowProgress:
        """Show a new bar instead of the previous one. Return the function that updates the new bar."""
        for earlier in self._progress.task_ids:
            self._progress.update(earlier, visible=False)
        task, started = self._progress.add_task(name, total=None, rate="", note=""), time.monotonic()
        first: int | None = None

        def tell(done: int, total: int, note: str = "") -> None:
            nonlocal first
            first = done if first is None else first
            rate = (done - first) / max(time.monotonic() - started, 1e-9)
            self._progress.update(task, completed=done, total=total, rate=f"{rate:,.0f}/s", note=note)

        return tell
