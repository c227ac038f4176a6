"""Long work in threads that the process does not wait for when it ends.

A process waits for an executor's threads: one that waits for an unresponsive store would keep it from ending.
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

#: The lowest priority on Linux is 19.
NICENESS: Final = 15


async def in_background(work: Callable[[], T], name: str, *, low_priority: bool = False) -> T:
    """Return the result of `work`, or raise its exception. Cancelling the caller does not end `work`: signal it."""
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
        with contextlib.suppress(RuntimeError):  # the loop has ended, and no caller waits
            loop.call_soon_threadsafe(settle, *outcome)

    threading.Thread(target=run, name=name, daemon=True).start()
    return await done


def yield_to_others() -> None:
    """Lower the calling thread's priority: it runs when no other thread wants the processor."""
    if sys.platform == "linux":  # only there has a thread its own priority
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
