"""Makes aiokafka's clients close completely when they are stopped.

When a client stops, it cancels its own tasks and awaits them. Without this patch, a task that has not begun, or a
fetch that waits for its retry after an error, passes its cancellation on to the caller that stops the client. The
caller then seems to be cancelled itself, and connections stay open. A client that is cancelled while it requests the
list of brokers would also leave its first connection open.
"""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from typing import Any, Final

from aiokafka import client, conn
from aiokafka.consumer import consumer, fetcher, group_coordinator


def close_completely() -> None:
    """From now on, every client of this process closes completely. A second call changes nothing."""
    consumer.Fetcher, consumer.NoGroupCoordinator = _Fetcher, _NoGroupCoordinator
    client.create_conn, client.AIOKafkaClient.bootstrap = _create_conn, _bootstrap


_bootstrap_of_aiokafka: Final = client.AIOKafkaClient.bootstrap
#: The connections made by a client that is starting.
_made: ContextVar[list[conn.AIOKafkaConnection] | None] = ContextVar("made", default=None)


async def _create_conn(*arguments: Any, **options: Any) -> conn.AIOKafkaConnection:
    made = await conn.create_conn(*arguments, **options)
    if (starting := _made.get()) is not None:
        starting.append(made)
    return made


async def _bootstrap(self: client.AIOKafkaClient) -> None:
    starting: list[conn.AIOKafkaConnection] = []
    before = _made.set(starting)
    try:
        await _bootstrap_of_aiokafka(self)
    except BaseException:
        for made in starting:
            made.close()
        raise
    finally:
        _made.reset(before)


class _Fetcher(fetcher.Fetcher):  # type: ignore[misc]
    _fetch_task: asyncio.Task[None]
    _pending_tasks: set[asyncio.Task[bool]]

    async def close(self) -> None:
        self._fetch_task.cancel()
        await asyncio.wait([self._fetch_task])  # this task comes first, because it creates fetches
        fetches, self._pending_tasks = self._pending_tasks, set()
        for fetch in fetches:
            fetch.cancel()
        if fetches:
            await asyncio.wait(fetches)
        await super().close()
        for fetch in fetches:
            if not fetch.cancelled():
                fetch.result()


class _NoGroupCoordinator(group_coordinator.NoGroupCoordinator):  # type: ignore[misc]
    async def close(self) -> None:
        await asyncio.sleep(0)  # lets the task begin: only a task that has begun ends cleanly when it is cancelled
        await super().close()
