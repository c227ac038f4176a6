"""The state of a partition that its checkpoint has in addition to the shard: the rows of its windows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from tables.checkpoints.snapshot import Position, SnapshotFile


class Copy(Protocol):
    """Files of one partition that do not change any more.

    `positions` are the offsets in the changelogs up to which the files have the rows. The files include at least the
    first `changes` changes of the rows. If `in_files`, the files may still contain forgotten bytes.
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
        """Release the files. After this call they may be removed."""


class AccompanyingRows(Protocol):
    """The rows that checkpoints have in addition to the shards, of all partitions of this worker."""

    def changes(self, partition: int) -> int | None:
        """A number that differs after each change of the rows, and after each removal of forgotten bytes.

        None if the partition's files are not open.
        """

    async def copy(self, partition: int) -> Copy | None:
        """Copy the partition's rows; None if there is nothing to copy."""


class Nothing:
    """The implementation of `AccompanyingRows` for a worker without such rows."""

    def changes(self, partition: int) -> int | None:
        return None

    async def copy(self, partition: int) -> Copy | None:
        return None
