"""What is done again and again, until the worker ends."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from schemas.errors import DataDirError
from streams.runtime.timers import MAY_HALT, OnFailure, Timer, Timers
from streams.telemetry.metrics import Metrics, labelled
from tests.support.waiting import until

FULL = DataDirError(Path("/data"), "no space left")


class Failing(Timers):
    """Timers, and what they count."""

    def __init__(self, on_failure: OnFailure) -> None:
        self.metrics = Metrics()
        super().__init__(on_failure, self.metrics.timer_failures)

    @property
    def counted(self) -> dict[tuple[str, ...], int]:
        return labelled(self.metrics.timer_failures)


async def test_work_is_done_again_until_the_timers_are_closed() -> None:
    done, timers = list[int](), Failing(_nothing_fails)

    async def work() -> None:
        done.append(len(done))

    timers.every(Timer.AGING, 0, work)
    await until(lambda: len(done) > 3)
    await timers.close()
    count = len(done)
    await asyncio.sleep(0.01)
    assert len(done) == count


@pytest.mark.parametrize("timer", Timer)
async def test_what_a_timer_raises_stops_the_worker_where_it_must_and_nobody_elsewhere(
    timer: Timer, caplog: pytest.LogCaptureFixture
) -> None:
    """Those without which the worker still does its work are told, counted, and tried again; so is the end of it."""
    caplog.set_level("INFO", "streams.runtime.timers")
    told, tried, done = list[tuple[str, str]](), list[int](), list[int]()
    timers = Failing(lambda exc, where: told.append((str(exc), where)))

    async def fail() -> None:
        tried.append(len(tried))
        if len(tried) < 4:
            raise FULL

    async def work() -> None:
        done.append(len(done))

    timers.every(timer, 0, fail)
    timers.every(Timer.AGING, 0, work)
    await until(lambda: len(done) > 3 and (told or len(tried) > 5))
    await timers.close()
    lines = [record.getMessage() for record in caplog.records if record.name == "streams.runtime.timers"]
    if timer in MAY_HALT:
        assert (told, tried, lines) == ([(str(FULL), f"the timer of {timer}")], [0], [])
        assert timers.counted == {}
    else:
        assert (told, timers.counted) == ([], {(timer.value,): 3})
        assert lines == [
            f"the timer of {timer} fails, and is tried again: DataDirError: {FULL}",
            f"the timer of {timer} works again",
        ]


async def test_a_failure_that_nobody_foresaw_is_told_by_where_it_happened(caplog: pytest.LogCaptureFixture) -> None:
    """Its text may quote what was said."""
    timers = Failing(_nothing_fails)

    async def fail() -> None:
        raise ValueError("I am allergic to nuts")

    timers.every(Timer.ANALYTICS, 0, fail)
    await until(lambda: timers.counted)
    await timers.close()
    assert "ValueError at " in caplog.text
    assert "test_timers.py" in caplog.text
    assert "nuts" not in caplog.text


def test_each_timer_that_may_halt_says_why() -> None:
    assert all(MAY_HALT.values())
    assert set(MAY_HALT) < set(Timer)


async def test_what_goes_on_beside_ends_with_them() -> None:
    timers, ended = Failing(_nothing_fails), asyncio.Event()

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
    timers, done = Failing(_nothing_fails), list[int]()

    async def work() -> None:
        done.append(1)

    await timers.close()
    timers.beside(work())
    timers.every(Timer.AGING, 0, work)
    await asyncio.sleep(0.01)
    assert done == []


def _nothing_fails(exc: Exception, where: str) -> None:
    raise AssertionError(where) from exc
