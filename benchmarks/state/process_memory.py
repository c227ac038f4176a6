"""Memory that only the process itself can free, and files of which no page is in memory."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

#: Memory that is used for a moment only is free again by then.
MOMENT_SECONDS: Final = 3.0
#: A worker that took in a lot has finished its later work by then, and has freed the memory that it does not use.
REST_SECONDS: Final = 90.0
#: The longest wait.
LONGEST_SECONDS: Final = 900.0
LOOK_SECONDS: Final = 0.2
#: A value counts as less only if it is below this share of the one before.
LESS: Final = 0.98


def anonymous_bytes(pid: int | str = "self") -> int:
    """`RssAnon`: without the pages of files, which the system reclaims when another process needs memory."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise OSError(f"process {pid} has no RssAnon: this is not Linux")


def settled(look: Callable[[], int], seconds: float = MOMENT_SECONDS) -> int:
    """The lowest value, once it has not fallen for this many seconds."""
    least, began = look(), time.monotonic()
    less, less_at = least, began
    while time.monotonic() - less_at < seconds and time.monotonic() - began < LONGEST_SECONDS:
        time.sleep(LOOK_SECONDS)
        least = min(least, look())
        if least < less * LESS:
            less, less_at = least, time.monotonic()
    return least


def drop_from_page_cache(folder: Path) -> None:
    """Drop the pages of these files from memory, if no process has them open. No other file is touched."""
    for path in folder.rglob("*"):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(descriptor)


def bytes_on_disk(folder: Path) -> int:
    """The bytes of all files; a sparse file counts its allocated blocks."""
    total = 0
    for inside, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(FileNotFoundError):  # a worker has just removed it
                total += Path(inside, name).lstat().st_blocks * 512
    return total
