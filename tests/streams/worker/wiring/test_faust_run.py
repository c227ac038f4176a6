"""Faust is stopped, whoever waits for the broker meanwhile."""

from __future__ import annotations

import asyncio
import logging
from types import SimpleNamespace
from typing import Any, cast

import pytest

from streams.worker.wiring import faust_run
from streams.worker.wiring.faust_run import FaustRun


class Parts:
    """What it stops, and notes of what was done with it."""

    def __init__(self) -> None:
        self.done: list[str] = []
        self.tells, self.stops = asyncio.Event(), asyncio.Event()

    async def tell_accesses(self) -> None:
        await self.tells.wait()
        self.done.append("told")

    async def stop(self) -> None:
        self.done.append("stopping")
        while not self.stops.is_set():
            try:
                await self.stops.wait()
            except asyncio.CancelledError:
                self.done.append("passed over")
                self.stops.set()
        self.done.append("stopped")

    def abandon(self) -> None:
        self.done.append("abandoned")

    def run(self) -> FaustRun:
        outbox = SimpleNamespace(abandon=lambda: None)
        hot = SimpleNamespace(abandon=self.abandon, outbox=outbox)
        return FaustRun(cast(Any, SimpleNamespace(faust=self, hot=hot)), cast(Any, self), cast(Any, None))


async def test_what_is_due_is_told_and_faust_stopped() -> None:
    parts = Parts()
    parts.tells.set()
    parts.stops.set()
    run = parts.run()
    await run.stop()
    await run.leave()
    assert parts.done == ["told", "stopping", "stopped"]


async def test_faust_is_stopped_also_where_the_broker_takes_no_accesses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faust_run, "TELL_SECONDS", 0.01)
    parts = Parts()
    parts.stops.set()
    run = parts.run()
    await run.stop()
    await run.leave()
    assert parts.done == ["stopping", "stopped"]


async def test_a_faust_that_does_not_stop_is_given_up_and_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """It passes over the first cancellation."""
    monkeypatch.setattr(faust_run, "FLUSH_SECONDS", 1.0)
    monkeypatch.setattr(faust_run, "LEAVE_SECONDS", 120.0)
    monkeypatch.setattr(faust_run, "AGAIN_SECONDS", 0.01)
    parts = Parts()
    parts.tells.set()
    run = parts.run()
    level = logging.getLogger("faust").level
    await run.stop()
    assert parts.done == ["told", "stopping", "abandoned"]
    assert logging.getLogger("faust").level == logging.CRITICAL
    await run.leave()
    assert parts.done[3:] == ["passed over", "stopped"]
    assert logging.getLogger("faust").level == level
