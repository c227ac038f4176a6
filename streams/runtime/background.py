"""Runs long work in daemon threads, for which the process does not wait when it ends.

Python waits for the threads of an executor at the end of the process. So the process could not end while a thread of
an executor waits for an object store that does not answer.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
from collections.abc import Callable
from typing import Any, Final, TypeVar

T = TypeVar("T")

#: The niceness of a thread with low priority. The highest niceness on Linux, which is the lowest priority, is 19.
NICENESS: Final = 15


async def in_background(work: Callable[[], T], name: str, *, low_priority: bool = False) -> T:
    """Run `work` in a thread. Return its result, or raise its exception.

    If the caller is cancelled, `work` goes on. To end it, the caller must signal it, for instance by an event.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def settle(set_to: Callable[[Any], None], value: Any) -> None:
        if not done.done():
            set_to(value)

    def run() -> None:
        if low_priority:
            yield_to_others()
        try:
            outcome: tuple[Callable[[Any], None], Any] = done.set_result, work()
        except BaseException as exc:
            outcome = done.set_exception, exc
        with contextlib.suppress(RuntimeError):  # the event loop has ended, so no caller waits for the result
            loop.call_soon_threadsafe(settle, *outcome)

    threading.Thread(target=run, name=name, daemon=True).start()
    return await done


async def in_background_to_the_end(work: Callable[[], T], name: str) -> T:
    """Like `in_background`, but a caller that is cancelled waits until `work` has ended.

    For short work that must not go on when the caller's partition is assigned again.
    """
    working = asyncio.ensure_future(in_background(work, name))
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        await asyncio.wait([working])
        raise


def yield_to_others() -> None:
    """Lower the priority of the calling thread, so that other threads get the processor first (Linux only)."""
    if sys.platform == "linux":  # on other systems, a thread has no priority of its own
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
