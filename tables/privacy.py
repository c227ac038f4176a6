"""What lies in a data directory is its owner's: others of the machine read none of it."""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path
from typing import Final

from tables.paths import make_usable

log = logging.getLogger(__name__)

#: For a process of its own: what it writes is read by nobody else, wherever that is.
OWNER_ALONE: Final = 0o077


def make_private(folder: Path) -> None:
    """Make the data directory where it is not there; shut others out of it, and of what is written from now on.

    A group that was let in stays in: one that has rights where others have none, or whose id new files get (setgid).
    What the process writes elsewhere has the same rights. Raises `DataDirError` where nothing can be written.
    """
    os.umask(OWNER_ALONE)
    make_usable(folder)
    mode = stat.S_IMODE(folder.stat().st_mode)
    wanted = mode & ~_shut_out(mode)
    if wanted != mode:
        try:
            folder.chmod(wanted)
        except PermissionError:
            log.warning(
                "%s may be read by others: it is another user's, who can shut them out (chmod %o)", folder, wanted
            )
    write_as_let_in(folder)


def write_as_let_in(folder: Path) -> None:
    """What this process writes from now on is for whom the data directory is for, where there is one."""
    try:
        mode = folder.stat().st_mode
    except OSError:
        mode = 0
    if not _lets_group_in(mode):
        os.umask(OWNER_ALONE)
    else:
        os.umask(0o007 if mode & stat.S_IWGRP else 0o027)


def _lets_group_in(mode: int) -> bool:
    """Rights that come with a usual umask were given by nobody."""
    return bool(mode & stat.S_IRWXG) and (not mode & stat.S_IRWXO or bool(mode & stat.S_ISGID))


def _shut_out(mode: int) -> int:
    return stat.S_IRWXO if _lets_group_in(mode) else stat.S_IRWXO | stat.S_IRWXG
