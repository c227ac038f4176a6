"""Files: their names in SQL, and what stays of them after a power cut."""

from __future__ import annotations

import os
from pathlib import Path


def quoted(path: Path | str) -> str:
    """What stands between the quotation marks of a SQL literal."""
    return str(path).replace("'", "''")


def synced(path: Path) -> None:
    """A file's bytes, or a folder's names, stay after a power cut from now on."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
