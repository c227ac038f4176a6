"""A fetched batch goes to its agent without a task of its own, unless something has to be waited for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from schemas.settings import Settings
from tests.streams.kafka.worker import TextWorker, unconnected


@pytest.fixture
async def worker(settings: Settings) -> AsyncIterator[TextWorker]:
    with unconnected(settings) as unstarted:
        yield unstarted


async def test_what_has_nothing_to_wait_for_is_done_in_one_step(worker: TextWorker) -> None:
    """No other callback of the loop comes in between, and nothing is left behind to be awaited."""
    done, others = list[str](), list[str]()

    async def handed_over() -> str:
        done.append("handed over")
        return "result"

    asyncio.get_running_loop().call_soon(others.append, "another callback")
    tasks = len(asyncio.all_tasks())
    waited = await worker.consumer.wait_first(handed_over(), asyncio.Event().wait())
    assert (done, others, len(asyncio.all_tasks())) == (["handed over"], [], tasks)
    assert (waited.results, waited.stopped) == (["result"], False)


async def test_what_waits_is_gone_on_with_where_it_was(worker: TextWorker) -> None:
    room, steps = asyncio.Event(), list[str]()

    async def handed_over() -> int:
        steps.append("begun")
        await room.wait()
        await asyncio.sleep(0)
        steps.append("ended")
        return len(steps)

    asyncio.get_running_loop().call_later(0.01, room.set)
    waited = await worker.consumer.wait_first(handed_over(), asyncio.Event().wait())
    assert (steps, waited.results) == (["begun", "ended"], [2])


async def test_what_waits_gives_way_to_the_other(worker: TextWorker) -> None:
    """Flow is suspended while an agent has no room: the rest of what was fetched is read again."""
    ended, suspended = list[str](), asyncio.Event()

    async def handed_over() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cancelled")

    asyncio.get_running_loop().call_later(0.01, suspended.set)
    await worker.consumer.wait_first(handed_over(), suspended.wait())
    await asyncio.sleep(0)
    assert ended == ["cancelled"]


async def test_what_goes_wrong_is_told(worker: TextWorker) -> None:
    async def at_once() -> None:
        raise ValueError("at once")

    async def later() -> None:
        await asyncio.sleep(0)
        raise ValueError("later")

    for handed_over, said in ((at_once, "at once"), (later, "later")):
        with pytest.raises(ValueError, match=said):
            await worker.consumer.wait_first(handed_over(), asyncio.Event().wait())
