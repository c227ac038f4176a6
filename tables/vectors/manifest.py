"""Which segments a shard has: one small file beside its catalog, that is swapped whole.

A crash leaves the manifest before or the one after. A file in `segments/` that it does not name is a draft.
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
#: A worker that finds a newer one makes its segments again.
_FORMAT: Final = 1


class Stamp(NamedTuple):
    """What segments belong to: a shard, and a state of its catalog (a random number, never 0)."""

    shard: uuid.UUID
    generation: int


class Named(msgspec.Struct, frozen=True):
    """A segment by the number in its name: its bytes, how many rows it was written with, and how many were gone."""

    number: int
    rows: int
    bytes: int
    gone: int = 0

    @property
    def name(self) -> str:
        return name_of(self.number)


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`changes`: how often the catalog had been changed when the segments held all of it; None where that is over."""

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
    """That of a shard's folder; None where there is none, or none that can be read."""
    try:
        found = _decode((folder / NAME).read_bytes())
    except (OSError, msgspec.MsgspecError):
        return None
    return found if found.format == _FORMAT else None


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Put it in the place of the one before. Raises OSError."""
    write_whole(folder / NAME, msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n")


def segment_files(folder: Path) -> list[Path]:
    """All files of segments in a shard's folder, those of no manifest with them."""
    return sorted((folder / FOLDER).glob("*.ivf*"))
