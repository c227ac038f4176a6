"""What a worker does again and again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from streams.ending import ended

#: Called with what a timer or a task has raised, and with what it was.
OnFailure = Callable[[Exception, str], None]


class Timers:
    """Timers, and tasks that run beside them; all of them end with the worker.

    What a timer raises goes to `on_failure`, and ends that timer.
    """

    def __init__(self, on_failure: OnFailure) -> None:
        self._on_failure = on_failure
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    def every(self, seconds: float, work: Callable[[], Awaitable[None]]) -> None:
        """Do the work again and again, with so many seconds before each time."""

        async def run() -> None:
            while True:
                await asyncio.sleep(seconds)
                try:
                    await work()
                except Exception as exc:
                    self._on_failure(exc, "a timer")
                    return

        self.beside(run())

    def beside(self, work: Coroutine[Any, Any, None]) -> None:
        """Have it done while everything else goes on. Once these are closed, nothing is begun any more."""
        if self._closed:
            work.close()
            return
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """End them all."""
        self._closed = True
        await ended(list(self._tasks))
