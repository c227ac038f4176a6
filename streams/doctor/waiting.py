"""Run blocking work that may never end."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


async def in_daemon(work: Callable[[], T]) -> T:
    """Run `work()` in a daemon thread, so that a dead network drive cannot keep the process from exiting.

    At its end, the process would wait for a thread of `asyncio.to_thread`.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def report(settle: Callable[[Any], None], result: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: no caller waits
            loop.call_soon_threadsafe(lambda: None if done.done() else settle(result))

    def run() -> None:
        try:
            result = work()
        except Exception as exc:
            report(done.set_exception, exc)
        else:
            report(done.set_result, result)

    threading.Thread(target=run, daemon=True).start()
    return await done
