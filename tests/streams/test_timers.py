"""What is done again and again, until the worker ends."""

from __future__ import annotations

import asyncio

from streams.timers import Timers
from tests.support.waiting import until


async def test_work_is_done_again_until_the_timers_are_closed() -> None:
    done, timers = list[int](), Timers(_nothing_fails)

    async def work() -> None:
        done.append(len(done))

    timers.every(0, work)
    await until(lambda: len(done) > 3)
    await timers.close()
    count = len(done)
    await asyncio.sleep(0.01)
    assert len(done) == count


async def test_what_a_timer_raises_is_told_and_ends_that_timer_alone() -> None:
    told, done = list[tuple[str, str]](), list[int]()
    timers = Timers(lambda exc, where: told.append((str(exc), where)))

    async def fail() -> None:
        raise ValueError("full")

    async def work() -> None:
        done.append(len(done))

    timers.every(0, fail)
    await until(lambda: told)
    timers.every(0, work)
    await until(lambda: len(done) > 3)
    await timers.close()
    assert told == [("full", "a timer")]


async def test_what_goes_on_beside_ends_with_them() -> None:
    timers, ended = Timers(_nothing_fails), asyncio.Event()

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    timers.beside(work())
    await asyncio.sleep(0)
    await timers.close()
    assert ended.is_set()


async def test_nothing_is_begun_after_they_were_closed() -> None:
    """A rebalance may come while a worker stops."""
    timers, done = Timers(_nothing_fails), list[int]()

    async def work() -> None:
        done.append(1)

    await timers.close()
    timers.beside(work())
    timers.every(0, work)
    await asyncio.sleep(0.01)
    assert done == []


def _nothing_fails(exc: Exception, where: str) -> None:
    raise AssertionError(where) from exc
