"""A shard's segments, read as files: what they hold, as they are put back from a copy, and lost."""

from __future__ import annotations

from pathlib import Path

from tables.vectors import manifest
from tables.vectors.manifest import read_manifest, segment_files
from tables.vectors.segment import Segment


def indexed(folder: Path, dimension: int) -> list[int]:
    """The numbers that the segments of the manifest hold, each as often as it is there; of what is damaged none."""
    found = read_manifest(folder)
    held: list[int] = []
    for named in found.segments if found is not None else ():
        if (segment := Segment.opened(folder / manifest.FOLDER / named.name, dimension)) is not None:
            held += segment.seqs().tolist()
    return sorted(held)


def manifest_of(folder: Path) -> Path:
    return folder / manifest.NAME


def copied(folder: Path) -> dict[str, bytes]:
    """All files of the index, by name."""
    files = [*segment_files(folder), *([manifest_of(folder)] if manifest_of(folder).exists() else [])]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def put_back(folder: Path, files: dict[str, bytes]) -> None:
    """Have these files, and no others, for an index."""
    lose(folder)
    for name, content in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)


def lose(folder: Path) -> None:
    """Have no index."""
    for path in (*segment_files(folder), manifest_of(folder)):
        path.unlink(missing_ok=True)
