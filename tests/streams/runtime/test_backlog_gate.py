"""Long-term work waits while conversations are taken in, but not for ever."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from streams.runtime import backlog_gate
from streams.runtime.backlog_gate import BACKLOG, BacklogGate


@dataclass
class Intake:
    """A number of records that wait, and a clock, both set by hand."""

    lag: int = 0
    now: float = 1000.0

    def first(self, seconds: float) -> BacklogGate:
        return BacklogGate(lambda: self.lag, seconds, lambda: self.now)


@pytest.fixture(autouse=True)
def _look_again_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backlog_gate, "LOOK_AGAIN_SECONDS", 0)


async def steps(count: int = 20) -> None:
    """Let everything go on that can."""
    for _ in range(count):
        await asyncio.sleep(0)


@pytest.mark.parametrize("lag", [0, BACKLOG - 1])
def test_without_a_backlog_nothing_waits(lag: int) -> None:
    assert not Intake(lag).first(10).must_wait()


def test_a_backlog_is_waited_for() -> None:
    assert Intake(BACKLOG).first(10).must_wait()


def test_a_backlog_is_waited_for_no_longer_than_the_seconds() -> None:
    """However much of it there is then, long-term work goes on until it has ended."""
    intake = Intake(BACKLOG)
    first = intake.first(10)
    waited = []
    for intake.now in (1000.0, 1009.9, 1010.0, 1011.0, 2000.0):
        waited.append(first.must_wait())
    assert waited == [True, True, False, False, False]


def test_a_backlog_that_ended_and_begins_again_is_waited_for_again() -> None:
    intake = Intake(BACKLOG)
    first = intake.first(10)
    assert first.must_wait()
    intake.now = 1020
    assert not first.must_wait()
    intake.lag = 0
    assert not first.must_wait()
    intake.lag = BACKLOG
    waited = []
    for intake.now in (1021.0, 1030.9, 1031.0):
        waited.append(first.must_wait())
    assert waited == [True, True, False]


def test_no_seconds_are_no_wait() -> None:
    assert not Intake(BACKLOG).first(0).must_wait()


async def test_waiting_ends_with_the_backlog() -> None:
    intake = Intake(BACKLOG)
    waiting = asyncio.ensure_future(intake.first(10).wait())
    await steps()
    assert not waiting.done()
    intake.lag = BACKLOG - 1
    await asyncio.wait_for(waiting, 30)


async def test_waiting_ends_with_the_seconds() -> None:
    intake = Intake(BACKLOG)
    waiting = asyncio.ensure_future(intake.first(10).wait())
    await steps()
    assert not waiting.done()
    intake.now += 10
    await asyncio.wait_for(waiting, 30)


async def test_without_a_backlog_the_wait_is_over_at_once() -> None:
    """It does not even let others go first: it costs a batch nothing."""
    intake = Intake()
    with pytest.raises(StopIteration):
        intake.first(10).wait().send(None)
