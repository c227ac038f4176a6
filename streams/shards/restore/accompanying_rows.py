"""The interface to the rows that a partition's checkpoint has in addition to its shard: the rows of its windows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from tables.checkpoints.snapshot import Position, SnapshotFile


class Copy(Protocol):
    """A copy of one partition's files, which does not change any more.

    `positions` has, for each changelog, the offset up to which the files have its rows. The files include at least
    the first `changes` changes of the rows. If `in_files` is True, the files may still contain bytes of forgotten
    data.
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
        """Return a number that differs after each change of the partition's rows.

        It also differs after each removal of forgotten bytes. Return None if the partition's files are not open.
        """

    async def copy(self, partition: int) -> Copy | None:
        """Return a copy of the partition's rows, or None if there is nothing to copy."""


class Nothing:
    """The implementation of `AccompanyingRows` for a worker whose checkpoints contain only shards."""

    def changes(self, partition: int) -> int | None:
        return None

    async def copy(self, partition: int) -> Copy | None:
        return None
