"""Reached offsets: how far the state in a partition's folder is, readable without opening it.

A worker that joins its group reports what is on its disk before any of it is open. The offset may be inexact: it
decides which worker gets a partition, never what is read again.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final

NAME: Final = "reached"
#: Without it there is no state in a folder.
CATALOG: Final = "catalog.duckdb"


def note_reached(folder: Path, offset: int) -> None:
    """Note that the state in the folder includes all of `long-term` before this offset."""
    draft = folder / f"{NAME}.draft"
    with suppress(OSError):  # the folder is gone with its partition, or the disk is full, which others report
        draft.write_text(str(offset), encoding="ascii")
        draft.replace(folder / NAME)


def reached(folders: Path) -> dict[int, int]:
    """Return the offset by partition, for each folder with state; 0 if none was noted."""
    found = {}
    with suppress(OSError):  # no folders yet, or one is being removed
        for folder in folders.iterdir():
            if folder.name.isdecimal() and (folder / CATALOG).exists():
                found[int(folder.name)] = _offset(folder / NAME)
    return found


def _offset(path: Path) -> int:
    try:
        return max(0, int(path.read_text(encoding="ascii")))
    except (OSError, ValueError):
        return 0
