"""What belongs to a partition beside its shard, and is copied in the same checkpoint: the windows' rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from tables.checkpoints.snapshot import Position, SnapshotFile


class Copy(Protocol):
    """Files of one partition that do not change, with positions of their own.

    `changes` is how often their source had changed by then, at least. `in_files`: bytes of what was forgotten may
    still lie in them.
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
        """They may go."""


class AccompanyingRows(Protocol):
    """Of all partitions of this worker."""

    def changes(self, partition: int) -> int | None:
        """A number that is another one after each change, and after what was forgotten has left the files.

        None where the partition's files are not open.
        """

    async def copy(self, partition: int) -> Copy | None:
        """None where there is nothing to copy."""


class Nothing:
    """In the place of what is not there."""

    def changes(self, partition: int) -> int | None:
        return None

    async def copy(self, partition: int) -> Copy | None:
        return None
