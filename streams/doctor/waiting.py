"""Runs blocking functions that may never return, such as reads from a dead network drive."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T")


async def in_daemon(work: Callable[[], T]) -> T:
    """Run `work()` in a daemon thread, and return its result. The process can exit even if `work()` never returns.

    With `asyncio.to_thread` instead, the process would wait for the thread before it exits.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def report(settle: Callable[[Any], None], result: object) -> None:
        with contextlib.suppress(RuntimeError):  # the event loop is closed, so no caller waits for the result
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
