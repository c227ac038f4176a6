"""Files of another generation, of which a restore copies what it would have to fetch."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from tables.checkpoints.manifest import File, Manifest


class Former(NamedTuple):
    """Another generation, as it was restored into a folder."""

    manifest: Manifest
    folder: Path


def copied(
    manifest: Manifest, former: Former, write: Callable[[int, memoryview, int], None]
) -> Iterator[tuple[str, int]]:
    """Copy what of a manifest's blocks is in former files and still what it was.

    `write` gets the number of a file, and content for an offset of it. Gives the checksum of each block, and the
    bytes that were written.
    """
    places: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
    for number, file in enumerate(manifest.files):
        for offset, sha256, _ in _blocks(file):
            places[sha256].append((number, offset))
    for file in former.manifest.files:
        wanted = [one for one in _blocks(file) if one[1] in places]
        path = former.folder / file.name
        if not wanted or not path.exists():
            continue
        with path.open("rb") as opened:
            for offset, sha256, length in wanted:
                opened.seek(offset)
                content = opened.read(length)
                if sha256 in places and hashlib.sha256(content).hexdigest() == sha256:
                    found = places.pop(sha256)
                    for number, at in found:
                        write(number, memoryview(content), at)
                    yield sha256, length * len(found)


def _blocks(file: File) -> Iterator[tuple[int, str, int]]:
    """Offset in the file, checksum and length of each."""
    offset = 0
    for block in file.blocks:
        yield offset, block.sha256, block.length
        offset += block.length
