"""Checkpoints on request: a client starts one, and asks for its progress until it is done."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import Protocol

from schemas.errors import CheckpointError, ShardNotHere, SiltstoneError


class Taken(Protocol):
    """A stored checkpoint: its generation, the number of bytes `uploaded` for it, and its `whole` size in bytes."""

    @property
    def generation(self) -> int: ...
    @property
    def uploaded(self) -> int: ...
    @property
    def whole(self) -> int: ...


class Outcome(Protocol):
    """The result of an attempt to take a checkpoint.

    If `outcome` is "unchanged", the newest checkpoint already has the present state. If `taken` is None after any
    other outcome, no checkpoint was taken, for the reason `why`.
    """

    @property
    def outcome(self) -> str: ...
    @property
    def taken(self) -> Taken | None: ...
    @property
    def why(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Asked:
    """The state of the last requested checkpoint of a partition. `error` is empty if nothing failed."""

    running: bool
    unchanged: bool = False
    generation: int | None = None
    uploaded: int | None = None
    whole: int | None = None
    error: str = ""


class AskedCheckpoints:
    """Takes checkpoints on request.

    `take` takes a checkpoint of a partition. It is None if the worker has no checkpoint store. `partitions` returns
    the partitions of this worker.

        asked.begin(3); asked.of(3).running
    """

    def __init__(
        self, take: Callable[[int], Awaitable[Outcome]] | None, partitions: Callable[[], Collection[int]]
    ) -> None:
        self._take, self._partitions = take, partitions
        self._runs: dict[int, asyncio.Task[Asked]] = {}

    def begin(self, partition: int) -> None:
        """Start a checkpoint of the partition, unless one is running.

        Raises `ShardNotHere` if this worker does not own the partition, and `CheckpointError` without a checkpoint
        store.
        """
        self._require_ours(partition)
        if self._take is None:
            raise CheckpointError("checkpoints are disabled: set checkpoints.url, and restart the worker")
        if partition not in self._runs or self._runs[partition].done():
            self._runs[partition] = asyncio.ensure_future(self._run(self._take, partition))

    def of(self, partition: int) -> Asked:
        """Return the state of the last requested checkpoint of the partition.

        Raises `ShardNotHere` if this worker does not own the partition, and `CheckpointError` if there was no
        request.
        """
        self._require_ours(partition)
        run = self._runs.get(partition)
        if run is None or run.cancelled():
            raise CheckpointError(
                f"this worker was not asked for a checkpoint of partition {partition}: the partition has moved, or "
                "the worker was restarted; ask again"
            )
        return run.result() if run.done() else Asked(running=True)

    async def close(self) -> None:
        """Cancel running checkpoints."""
        for run in self._runs.values():
            run.cancel()
        await asyncio.gather(*self._runs.values(), return_exceptions=True)

    def _require_ours(self, partition: int) -> None:
        if partition not in self._partitions():
            raise ShardNotHere(partition, "its partition is on another worker, or moving; ask again")

    @staticmethod
    async def _run(take: Callable[[int], Awaitable[Outcome]], partition: int) -> Asked:
        try:
            done = await take(partition)
        except SiltstoneError as exc:
            return Asked(running=False, error=str(exc))
        if done.taken is not None:
            taken = done.taken
            return Asked(False, False, taken.generation, taken.uploaded, taken.whole)
        unchanged = done.outcome == "unchanged"
        return Asked(running=False, unchanged=unchanged, error="" if unchanged else done.why or done.outcome)
