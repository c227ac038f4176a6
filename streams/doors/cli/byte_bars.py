"""Progress bars on standard error that count bytes, for commands that read or write much data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn


def progress(*columns: Any) -> Progress:
    """Return a progress bar on standard error. It is shown only if standard error is a terminal."""
    console = Console(stderr=True)
    shown = columns or (TextColumn("{task.completed:.0f} of {task.total:.0f}"),)
    parts = (TextColumn("{task.description}"), BarColumn(), *shown)
    return Progress(*parts, console=console, transient=True, disable=not console.is_terminal)


class ByteBars:
    """Progress bars, of which only the newest is shown. A bar shows a number of bytes and the bytes per second."""

    def __init__(self) -> None:
        self._progress = progress(DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def of(self, name: str) -> Callable[[int, int], None]:
        for earlier in self._progress.task_ids:
            self._progress.update(earlier, visible=False)
        task = self._progress.add_task(name, total=None)
        return lambda done, whole: self._progress.update(task, completed=done, total=whole)
