"""How far the state in a partition's folder is, readable without opening it.

A worker that joins its group says what is on its disk before any of it is open. It need not be exact: it decides who
gets a partition, never what is read again.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final

NAME: Final = "reached"
#: Without it there is no state in a folder.
CATALOG: Final = "catalog.duckdb"


def note_reached(folder: Path, offset: int) -> None:
    """The state in the folder holds what lies before this offset of `long-term`."""
    draft = folder / f"{NAME}.draft"
    with suppress(OSError):  # the folder has gone with its partition, or the disk is full: others say so
        draft.write_text(str(offset), encoding="ascii")
        draft.replace(folder / NAME)


def reached(folders: Path) -> dict[int, int]:
    """The offset by partition, of each folder with state in it; 0 where none was noted."""
    found = {}
    with suppress(OSError):  # there are none yet, or one is just being removed
        for folder in folders.iterdir():
            if folder.name.isdecimal() and (folder / CATALOG).exists():
                found[int(folder.name)] = _offset(folder / NAME)
    return found


def _offset(path: Path) -> int:
    try:
        return max(0, int(path.read_text(encoding="ascii")))
    except (OSError, ValueError):
        return 0
