"""Makes aiokafka's clients close completely when they are stopped.

When a client stops, it cancels its own tasks and awaits them. Without this patch, a task that has not begun, or a
fetch that waits for its retry after an error, passes its cancellation on to the caller that stops the client. The
caller then seems to be cancelled itself, and connections stay open. A client that is cancelled while it requests the
list of brokers would also leave its first connection open. So would a task that is just connecting while the client
stops, and a stop that is cancelled itself, as when a worker on a busy machine ends its tasks.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from functools import wraps
from operator import attrgetter
from typing import Any, Final
from weakref import WeakSet

from aiokafka import client, conn
from aiokafka.consumer import consumer, fetcher, group_coordinator
from aiokafka.producer import producer

log = logging.getLogger(__name__)


def close_completely() -> None:
    """From now on, every client of this process closes completely. A second call changes nothing."""
    consumer.Fetcher, consumer.NoGroupCoordinator = _Fetcher, _NoGroupCoordinator
    client.create_conn, client.AIOKafkaClient.bootstrap = _create_conn, _bootstrap
    client.AIOKafkaClient.close, client.AIOKafkaClient._get_conn = _close, _get_conn
    consumer.AIOKafkaConsumer.stop, producer.AIOKafkaProducer.stop = _stop_consumer, _stop_producer


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


#: Clients that have closed, or are closing: they open no further connection.
_closed: Final[WeakSet[client.AIOKafkaClient]] = WeakSet()
_close_of_aiokafka: Final = client.AIOKafkaClient.close
_get_conn_of_aiokafka: Final = client.AIOKafkaClient._get_conn


def _disconnect(closing: client.AIOKafkaClient) -> None:
    """Close all connections of a client at once. All that waits for an answer fails."""
    _closed.add(closing)
    for connection in list(closing._conns.values()):
        connection.close(reason=conn.CloseReason.SHUTDOWN)


async def _close(self: client.AIOKafkaClient) -> None:
    _closed.add(self)
    try:
        await _close_of_aiokafka(self)
    finally:
        _disconnect(self)


async def _get_conn(self: client.AIOKafkaClient, *where: Any, **how: Any) -> conn.AIOKafkaConnection | None:
    if self in _closed:
        return None
    made = await _get_conn_of_aiokafka(self, *where, **how)
    if made is not None and self in _closed:
        made.close(reason=conn.CloseReason.SHUTDOWN)
        return None
    return made


Stop = Callable[[Any], Awaitable[None]]
#: Stops that go on after their caller was cancelled. Without connections, they end soon.
_going_on: Final = set[asyncio.Future[None]]()


def _stopped_completely(stop: Stop, client_of: Callable[[Any], client.AIOKafkaClient]) -> Stop:
    """Return `stop`, so that its connections also close if it is cancelled, or fails."""

    @wraps(stop)
    async def stopped(self: Any) -> None:
        stopping = asyncio.ensure_future(stop(self))
        try:
            await asyncio.shield(stopping)
        except BaseException:
            _disconnect(client_of(self))
            if not stopping.done():
                _going_on.add(stopping)
                stopping.add_done_callback(_gone)
            raise

    return stopped


def _gone(stopping: asyncio.Future[None]) -> None:
    _going_on.discard(stopping)
    if not stopping.cancelled() and (fault := stopping.exception()) is not None:
        log.info("a client that was given up while it stopped: %s: %s", type(fault).__name__, fault)


_stop_consumer: Final = _stopped_completely(consumer.AIOKafkaConsumer.stop, attrgetter("_client"))
_stop_producer: Final = _stopped_completely(producer.AIOKafkaProducer.stop, attrgetter("client"))


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
