"""Who waits for a record is told when it is processed, and when its partition moves; nobody is left behind."""

from __future__ import annotations

import asyncio

import pytest

from streams.kafka.commit.waiters import Waiters

TOPIC = ("siltstone.long-term", 3)
OTHER = ("siltstone.long-term", 4)


async def waiting(waiters: Waiters, *offsets: int) -> list[asyncio.Task[bool]]:
    tasks = [asyncio.create_task(waiters.until(TOPIC, offset)) for offset in offsets]
    await asyncio.sleep(0)
    return tasks


async def test_those_before_the_position_go_on_and_the_others_wait() -> None:
    waiters = Waiters()
    tasks = await waiting(waiters, 9, 3, 7, 3)
    waiters.reached(OTHER, 100)
    assert len(waiters) == 4
    waiters.reached(TOPIC, 7)
    await asyncio.sleep(0)
    assert [task.done() for task in tasks] == [False, True, False, True]
    waiters.reached(TOPIC, 10)
    assert await asyncio.gather(*tasks) == [True] * 4
    assert not waiters


async def test_who_waits_is_told_that_partitions_move() -> None:
    waiters = Waiters()
    tasks = await waiting(waiters, 9, 3)
    waiters.moved()
    assert await asyncio.gather(*tasks) == [False, False]
    assert not waiters


async def test_who_does_not_wait_any_longer_leaves_nothing_behind() -> None:
    waiters = Waiters()
    first, second = await waiting(waiters, 9, 3)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert len(waiters) == 1
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    assert not waiters
