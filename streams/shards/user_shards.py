"""Finds the shard of a user, waits until it has caught up with the log, and limits the time of calls to the shard."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Concatenate, Final, ParamSpec, TypeVar

from schemas import topics
from schemas.errors import NotReady, ShardComingBack, ShardNotHere
from streams.runtime.clock import Clock
from streams.shards.owned import OwnedShards
from streams.telemetry.health import Health
from streams.telemetry.recovery_progress import Behind, seconds_left
from tables.memories.shard import Shard

P = ParamSpec("P")
T = TypeVar("T")

#: The maximum number of seconds that a request waits for a shard that is being opened, or for a broker that does not
#: answer.
WAIT_SECONDS: Final = 10.0

NOT_HERE: Final = "its partition is on another worker, or moving; ask again"


class UserShards:
    """The shards of this worker's users. `until_caught_up` waits until a partition's shard has read its log."""

    def __init__(
        self,
        shards: OwnedShards,
        partitions: int,
        health: Health,
        clock: Clock,
        until_caught_up: Callable[[int], Awaitable[None]],
    ) -> None:
        self._shards, self._partitions, self._health, self._clock = shards, partitions, health, clock
        self._until_caught_up = until_caught_up

    def partition_here(self, user_id: str) -> int:
        """Return the user's partition. Raises `ShardNotHere` if this worker does not own it.

        If the partition is not recovered yet, raises `ShardComingBack`, or `ShardNotHere` if the progress of the
        recovery is not known.
        """
        partition = self.assigned(user_id)
        if not self._health.recovered:
            self.say_what_comes_back(user_id)
            raise ShardNotHere(partition, NOT_HERE)
        return partition

    def partition_of(self, user_id: str) -> int:
        """The user's partition, even if another worker owns it."""
        return topics.partition_of(user_id, self._partitions)

    def assigned(self, user_id: str) -> int:
        """Return the user's partition, even if it is not recovered yet.

        Raises `ShardNotHere` if the partition is not assigned to this worker.
        """
        partition = self.partition_of(user_id)
        if partition not in self._shards.partitions():
            raise ShardNotHere(partition, NOT_HERE)
        return partition

    def say_what_comes_back(self, user_id: str, cause: Exception | None = None) -> None:
        """Raise `ShardComingBack` if the user's partition is still being recovered."""
        partition = self.partition_of(user_id)
        if behind := self._shards.coming_back.of(partition):
            what = "; ".join(one.what() for one in behind)
            left = seconds_left(behind) or 1.0
            raise ShardComingBack(partition, f"it is coming back: {what}; ask again", left) from cause

    async def readable(self, user_id: str, partial: bool) -> Sequence[Behind]:
        """Wait until the user's partition has caught up. If `partial`, wait only until its shard is open.

        Return the parts of the partition that are still being recovered. Without `partial`, there are none.
        """
        if not partial:
            await self.caught_up(user_id)
            return ()
        partition = self.assigned(user_id)
        await self._shards.position(partition)
        if behind := self._shards.coming_back.of(partition):
            # While a shard catches up, the clock does not know its newest event yet, so pass the event's time here.
            self._clock.observe(await self._shards.call(partition, lambda shard: shard.ageing.newest_event()))
        return behind

    async def caught_up(self, user_id: str) -> int:
        """Wait until the user's shard is open and has caught up with the log. Return its partition."""
        partition = self.partition_here(user_id)
        await self._until_caught_up(partition)
        return partition

    async def ask(
        self, user_id: str, method: Callable[Concatenate[Shard, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Wait until the user's shard has caught up, then call `method(shard, …)` and return its result.

        Raises `ShardComingBack` if the recovery takes too long, and `TimeoutError` if the shard is busy.
        """
        return (await self.ask_partly(False, user_id, method, *args, **kwargs))[0]

    async def ask_partly(
        self,
        partial: bool,
        user_id: str,
        method: Callable[Concatenate[Shard, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> tuple[T, Sequence[Behind]]:
        """Like `ask`, but also return the parts of the partition that are still being recovered.

        If `partial`, do not wait for these parts.
        """
        async with self.in_time(user_id):
            behind = await self.readable(user_id, partial)
            return await self._shards.call(self.partition_of(user_id), method, *args, **kwargs), behind

    @asynccontextmanager
    async def in_time(self, user_id: str) -> AsyncIterator[float]:
        """Limit the time of a request about the user to `WAIT_SECONDS`. Yields its end, by the event loop's clock.

        If the request takes longer, raises `ShardComingBack` if the user's partition is being recovered, else
        `TimeoutError`.
        """
        try:
            ends = asyncio.get_running_loop().time() + WAIT_SECONDS
            async with asyncio.timeout_at(ends):
                yield ends
        except TimeoutError as exc:
            self.say_what_comes_back(user_id, exc)
            raise

    @asynccontextmanager
    async def own_shards(self) -> AsyncIterator[None]:
        """Limit the time of calls to this worker's shards. Raises `NotReady` while the tables are being recovered.

        `NotReady` is also raised if a shard moves during the calls. Each worker answers only for its own shards, so
        an answer during a move would cover an unknown set of shards.
        """
        if not self._health.recovered:
            raise NotReady(f"{'; '.join(self._health.not_ready())}; ask again")
        try:
            async with asyncio.timeout(WAIT_SECONDS):
                yield
        except ShardNotHere as exc:
            raise NotReady(f"partitions are moving ({exc}); ask again") from exc
