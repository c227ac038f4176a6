"""A shard's files as they are at one moment, for a checkpoint: what is the truth, and none of the caches."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tables.checkpoints.snapshot import SnapshotFile
from tables.memories.catalog.hold import Held
from tables.memories.catalog.reembedding import VectorModel

#: The folder of a shard's files in a checkpoint.
FOLDER: Final = "shard"
#: The name of the position in the log of memories, regardless of the topic's name.
LONG_TERM: Final = "long-term"


class Frozen(NamedTuple):
    """`position` is the offset in the log up to which the events are in the files; `changes` how often they changed.

    `in_pages`: bytes of what was forgotten may lie in them. The files stay as they are until `held` is broken or the
    shard is thawed.
    """

    position: int
    changes: int
    in_pages: bool
    model: VectorModel
    files: Sequence[SnapshotFile]
    held: Held


def snapshot_files(files: Sequence[tuple[Path, int]]) -> list[SnapshotFile]:
    """None is sealed: DuckDB writes into its file, and vectors are appended and zeroed."""
    return [SnapshotFile(f"{FOLDER}/{path.name}", path, length, False) for path, length in files]
