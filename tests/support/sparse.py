"""Files with holes: those of a shard's searched rows are sixteen megabytes each, of which little is written."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple


class Held(NamedTuple):
    """A file: its size, and what lies at which of its places. All else is zeros."""

    size: int
    pieces: tuple[tuple[int, bytes], ...]

    @property
    def written(self) -> bytes:
        """All that is not a hole; a zero stands for each of those."""
        return b"\0".join(content for _, content in self.pieces)

    def put(self, path: Path) -> None:
        """Have such a file there."""
        with path.open("wb") as file:
            for at, content in self.pieces:
                file.seek(at)
                file.write(content)
            file.truncate(self.size)


def held(path: Path) -> Held:
    """The file as it is, without reading its holes."""
    pieces, at = [], 0
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        while at < size:
            try:
                start = os.lseek(file.fileno(), at, os.SEEK_DATA)
            except OSError:  # nothing but a hole
                break
            at = os.lseek(file.fileno(), start, os.SEEK_HOLE)
            pieces.append((start, os.pread(file.fileno(), at - start, start)))
    return Held(size, tuple(pieces))


def copy(source: str | Path, target: str | Path) -> str | Path:
    """For `shutil.copytree`."""
    held(Path(source)).put(Path(target))
    return target
