"""State of a partition that goes into its checkpoint beside the shard: the rows of its windows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from tables.checkpoints.snapshot import Position, SnapshotFile


class Copy(Protocol):
    """Unchanging files of one partition, with their own positions.

    `changes` counts at least the changes of their source up to this copy. `in_files`: bytes of what was forgotten may
    still be in them.
    """

    @property
    def files(self) -> Sequence[SnapshotFile]: ...

    @property
    def positions(self) -> Mapping[str, Position]: ...

    @property
    def changes(self) -> int: ...

    @property
    def in_files(self) -> bool: ...

    async def close(self) -> None:
        """Release the files; they may be removed."""


class AccompanyingRows(Protocol):
    """The rows beside the shards, of all partitions of this worker."""

    def changes(self, partition: int) -> int | None:
        """A number that differs after each change, and after forgotten bytes have been removed from the files.

        None if the partition's files are not open.
        """

    async def copy(self, partition: int) -> Copy | None:
        """Copy the partition's rows; None if there is nothing to copy."""


class Nothing:
    """`AccompanyingRows` of a worker that has none."""

    def changes(self, partition: int) -> int | None:
        return None

    async def copy(self, partition: int) -> Copy | None:
        return None
