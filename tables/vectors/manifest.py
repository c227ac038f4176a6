"""The manifest of a shard's segments: a small file beside its catalog that is replaced as a whole.

After a crash, there is the old manifest or the new one, always complete. A segment file in `segments/` that the
manifest does not name is not part of the index.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from tables.paths import write_whole

NAME: Final = "segments.json"
FOLDER: Final = "segments"
#: A worker that finds another format rebuilds the segments.
_FORMAT: Final = 1


class Stamp(NamedTuple):
    """The catalog to which segments belong: its shard, and a `generation`.

    The generation is a random number, never 0, that the catalog stores before a manifest with this number is written.
    """

    shard: uuid.UUID
    generation: int


class Named(msgspec.Struct, frozen=True):
    """A segment in the manifest: the number in its file name, its rows when it was written, and its file's bytes.

    `gone` is the number of rows that were removed since it was written.
    """

    number: int
    rows: int
    bytes: int
    gone: int = 0

    @property
    def name(self) -> str:
        return name_of(self.number)


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The segments of a shard, and the catalog to which they belong.

    `changes` is the value of the catalog's counter of changes at a moment when the segments had exactly the catalog's
    vectors. If it is None, the segments may lack vectors.
    """

    shard: uuid.UUID
    generation: int
    dimension: int
    segments: Sequence[Named]
    changes: int | None = None
    format: int = _FORMAT

    @property
    def stamp(self) -> Stamp:
        return Stamp(self.shard, self.generation)


_decode: Final = msgspec.json.Decoder(Manifest).decode


def name_of(number: int) -> str:
    return f"{number:016x}.ivf"


def read_manifest(folder: Path) -> Manifest | None:
    """Return the manifest in a shard's folder; None if it is missing, unreadable or of another format."""
    try:
        found = _decode((folder / NAME).read_bytes())
    except (OSError, msgspec.MsgspecError):
        return None
    return found if found.format == _FORMAT else None


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Replace the manifest in a shard's folder. Raises OSError."""
    write_whole(folder / NAME, msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n")


def segment_files(folder: Path) -> list[Path]:
    """Return all segment files in a shard's folder, including files that no manifest names."""
    return sorted((folder / FOLDER).glob("*.ivf*"))
