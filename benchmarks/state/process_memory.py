"""Memory of a process that nothing but the process itself can give back, and a disk of which nothing is in memory."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

LOOKS: Final = 15
LOOK_SECONDS: Final = 0.2


def anonymous_bytes(pid: int | str = "self") -> int:
    """`RssAnon`: without the pages of files, which the system takes back when somebody else needs memory."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise OSError(f"process {pid} has no RssAnon: this is not Linux")


def settled(look: Callable[[], int], looks: int = LOOKS) -> int:
    """The least within three seconds: what is there for a moment only is not kept."""
    least = look()
    for _ in range(looks):
        time.sleep(LOOK_SECONDS)
        least = min(least, look())
    return least


def drop_from_page_cache(folder: Path) -> None:
    """Nothing of these files is in memory any more, where no process has them open. No other file is touched."""
    for path in folder.rglob("*"):
        if path.is_file():
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
                os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(descriptor)


def bytes_on_disk(folder: Path) -> int:
    """Of all files; those that are sparse count what they take."""
    total = 0
    for path in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):  # a worker has just removed it
            total += path.stat().st_blocks * 512 if path.is_file() else 0
    return total
