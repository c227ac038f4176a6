"""Work in a thread, of which the caller is cancelled."""

from __future__ import annotations

import asyncio
import threading

import pytest

from streams.runtime.background import in_background_to_the_end


async def test_a_cancelled_caller_waits_until_its_work_has_ended() -> None:
    """Else the next owner of the files would begin beside it."""
    begun, release, ended = asyncio.Event(), threading.Event(), list[bool]()
    loop = asyncio.get_running_loop()

    def work() -> None:
        loop.call_soon_threadsafe(begun.set)
        ended.append(release.wait(60))

    caller = asyncio.create_task(in_background_to_the_end(work, "work"))
    await begun.wait()
    caller.cancel()
    for _ in range(5):
        await asyncio.sleep(0)
    assert not caller.done()
    release.set()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert ended == [True]


async def test_a_caller_gets_what_its_work_returns_and_raises() -> None:
    assert await in_background_to_the_end(lambda: 3, "work") == 3
    with pytest.raises(ZeroDivisionError):
        await in_background_to_the_end(lambda: 1 // 0, "work")
