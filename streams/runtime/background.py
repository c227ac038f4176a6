"""Work that may take long, in threads that nobody waits for at the end.

A thread of an executor is waited for when the process ends: one that asks a store that says nothing would keep it.
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

#: Of 19, the least that Linux gives.
NICENESS: Final = 15


async def in_background(work: Callable[[], T], name: str, *, low_priority: bool = False) -> T:
    """What `work` gives, or raises. Who is cancelled meanwhile does not end it: it has to be told otherwise."""
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
        with contextlib.suppress(RuntimeError):  # the loop has ended, and nobody waits
            loop.call_soon_threadsafe(settle, *outcome)

    threading.Thread(target=run, name=name, daemon=True).start()
    return await done


def yield_to_others() -> None:
    """The calling thread gets the processor when nobody else wants it."""
    if sys.platform == "linux":  # where alone a thread has a priority of its own
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
