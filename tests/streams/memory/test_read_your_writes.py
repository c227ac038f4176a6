"""Waiting for what was written is bounded in time and in number."""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager

import pytest

from schemas.errors import NotReady, ShardNotHere
from schemas.places import Place
from streams.memory.read_your_writes import ReadYourWrites, asked_by

PLACE = Place("siltstone.long-term", 3, 17)


class Log:
    """A log whose partitions from 5 on are another worker's."""

    def __init__(self) -> None:
        self.readable = asyncio.Event()
        self.asked: list[Place] = []
        self.end = 20

    async def is_written(self, topic: str, partition: int, offset: int) -> bool:
        return offset < self.end

    async def until_readable(self, topic: str, partition: int, offset: int) -> bool:
        self.asked.append(Place(topic, partition, offset))
        if partition < 5:
            await self.readable.wait()
        return partition < 5


async def test_it_can_be_read_or_not_in_time() -> None:
    log = Log()
    effects = ReadYourWrites(log)
    assert await effects.until([PLACE], 0) is False
    log.readable.set()
    assert await effects.until([PLACE], 0) is True
    assert await effects.until([], 0) is True


async def test_the_last_place_of_a_partition_is_asked_for() -> None:
    log = Log()
    log.readable.set()
    await ReadYourWrites(log).until([PLACE, PLACE._replace(offset=20), PLACE._replace(offset=18)], 1)
    assert log.asked == [PLACE._replace(offset=20)]


async def test_what_is_not_ours_is_said_to_be_elsewhere() -> None:
    with pytest.raises(ShardNotHere) as moved:
        await ReadYourWrites(Log()).until([PLACE._replace(partition=5)], 1)
    assert moved.value.partition == 5


async def test_no_more_than_so_many_wait() -> None:
    effects = ReadYourWrites(Log(), most=1)
    with effects.reserved(), pytest.raises(NotReady, match="1 requests wait"), effects.reserved():
        pass
    with effects.reserved():
        pass


async def test_no_more_than_so_many_of_one_token_wait() -> None:
    """Others have places still; who needs no token has all that there are."""
    effects = ReadYourWrites(Log(), most=4, most_of_one=2)

    def waits(who: str | None) -> AbstractContextManager[None]:
        asked_by.set(who)
        return effects.reserved()

    with waits("ann"), waits("ann"):
        with pytest.raises(NotReady, match="2 requests with this token wait"), waits("ann"):
            pass
        with waits("bob"), waits(None), pytest.raises(NotReady, match="4 requests wait"), waits(None):
            pass
    with waits("ann"), waits(None), waits(None), waits(None):
        pass


async def test_nobody_waits_for_what_was_never_written() -> None:
    effects = ReadYourWrites(Log())
    await effects.are_written([PLACE, PLACE._replace(offset=19)], 1)
    with pytest.raises(NotReady, match="there is no record at"):
        await effects.are_written([PLACE._replace(offset=2**62)], 1)
