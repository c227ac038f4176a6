"""A data directory is private to its owner: other users of the machine cannot read it.

The mode of the data directory itself keeps other users out, regardless of the modes of the files in it. The umask
belongs to the whole process, so only a command sets it (`streams/doors/cli/process.py`). If Siltstone is used as a
library, it does not change the umask.
"""

from __future__ import annotations

import logging
import stat
from pathlib import Path
from typing import Final

from tables.paths import make_usable

log = logging.getLogger(__name__)

#: With this umask, only the owner can read the files that a process creates, in any folder.
OWNER_ALONE: Final = 0o077


def make_private(folder: Path) -> None:
    """Make the data directory if it is missing, and remove other users' rights to it.

    A group keeps rights that were given to it on purpose. Rights count as given on purpose if other users have no
    rights, or if the directory has the setgid bit. Raises `DataDirError` if the directory cannot be written to.
    """
    make_usable(folder, stat.S_IRWXU)
    mode = stat.S_IMODE(folder.stat().st_mode)
    wanted = mode & ~_shut_out(mode)
    if wanted != mode:
        try:
            folder.chmod(wanted)
        except PermissionError:
            log.warning("other users may read %s: only its owner can prevent that (chmod %o)", folder, wanted)


def umask_of(folder: Path) -> int:
    """Return the umask that restricts files to the data directory's owner, and to a group that has access.

    The result is the same before and after `make_private`. If the folder does not exist yet, return `OWNER_ALONE`.
    """
    try:
        mode = folder.stat().st_mode
    except OSError:
        return OWNER_ALONE
    if not _lets_group_in(mode):
        return OWNER_ALONE
    return 0o007 if mode & stat.S_IWGRP else 0o027


def _lets_group_in(mode: int) -> bool:
    """True if the group's rights were given on purpose. Rights that a usual umask leaves to a group do not count."""
    return bool(mode & stat.S_IRWXG) and (not mode & stat.S_IRWXO or bool(mode & stat.S_ISGID))


def _shut_out(mode: int) -> int:
    return stat.S_IRWXO if _lets_group_in(mode) else stat.S_IRWXO | stat.S_IRWXG
