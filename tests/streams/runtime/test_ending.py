"""Tasks that pass over a cancellation."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from streams.runtime import ending
from streams.runtime.ending import ended

hearing = asyncio.Event()


@pytest.fixture(autouse=True)
def _deaf_again() -> None:
    hearing.clear()


async def deaf(times: int) -> None:
    """It passes over so many cancellations, or until it hears."""
    for _ in range(times):
        if hearing.is_set():
            return
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()


@pytest.fixture(autouse=True)
def _quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ending, "AGAIN_SECONDS", 0.01)


async def test_a_task_that_passes_over_cancellations_is_ended() -> None:
    tasks = [asyncio.create_task(deaf(times)) for times in (0, 1, 5)]
    await asyncio.sleep(0)
    assert await ended(tasks, first=0.01) == set()
    assert all(task.done() for task in tasks)


async def test_what_does_not_end_is_told() -> None:
    stubborn, other = asyncio.create_task(deaf(1_000_000)), asyncio.create_task(deaf(1))
    await asyncio.sleep(0)
    assert await ended([stubborn, other], 1.0, first=0.01) == {stubborn}
    assert other.done()
    hearing.set()
    await ended([stubborn], first=0.01)


async def test_what_has_ended_is_not_waited_for() -> None:
    task = asyncio.create_task(deaf(0))
    await task
    assert await ended([task]) == set()
    assert await ended([]) == set()


async def test_the_clean_up_that_a_cancellation_begins_is_not_cancelled() -> None:
    """However many further ones there would have been in the time that it takes."""
    cleaned = list[str]()

    async def working() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0.1)
            cleaned.append("all of it")

    task = asyncio.create_task(working())
    await asyncio.sleep(0)
    assert await ended([task]) == set()
    assert cleaned == ["all of it"]
