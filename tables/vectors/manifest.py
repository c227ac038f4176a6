"""The manifest of a shard's segments: a small file beside its catalog that is replaced as a whole.

A crash leaves the old manifest or the new one. A file in `segments/` that it does not name is a draft.
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
    """The owner of segments: a shard, and a generation of its catalog (a random number, never 0)."""

    shard: uuid.UUID
    generation: int


class Named(msgspec.Struct, frozen=True):
    """A segment: the number in its name, its rows when written, its bytes, and how many rows were removed."""

    number: int
    rows: int
    bytes: int
    gone: int = 0

    @property
    def name(self) -> str:
        return name_of(self.number)


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`changes`: the number of catalog changes when the segments held every vector; None if they may not any more."""

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
    """The manifest in a shard's folder; None if it is missing, unreadable or of another format."""
    try:
        found = _decode((folder / NAME).read_bytes())
    except (OSError, msgspec.MsgspecError):
        return None
    return found if found.format == _FORMAT else None


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Replace the manifest. Raises OSError."""
    write_whole(folder / NAME, msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n")


def segment_files(folder: Path) -> list[Path]:
    """All segment files in a shard's folder, in a manifest or not."""
    return sorted((folder / FOLDER).glob("*.ivf*"))
