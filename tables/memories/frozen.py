"""A shard's files as they are at one moment, for a checkpoint: the authoritative files, without the caches."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tables.checkpoints.snapshot import SnapshotFile
from tables.memories.catalog.hold import Held
from tables.memories.catalog.reembedding import VectorModel

#: The folder of a shard's files in a checkpoint.
FOLDER: Final = "shard"
#: The key under which a checkpoint stores the position in the event log. It does not depend on the topic's name.
LONG_TERM: Final = "long-term"


class Frozen(NamedTuple):
    """A shard's files, unchanged until `held` is broken or the shard is thawed.

    `position` is the offset in the event log up to which the files include the events. `changes` is the catalog's
    counter of changes. `in_pages` is true if the files may contain forgotten data.
    """

    position: int
    changes: int
    in_pages: bool
    model: VectorModel
    files: Sequence[SnapshotFile]
    held: Held


def snapshot_files(files: Sequence[tuple[Path, int]]) -> list[SnapshotFile]:
    """Describe files for a snapshot. `files` has the path of each file, and the number of bytes to copy.

    No file is marked as sealed, because its bytes may change later: DuckDB writes into its file, and vectors are
    appended and zeroed.
    """
    return [SnapshotFile(f"{FOLDER}/{path.name}", path, length, False) for path, length in files]
