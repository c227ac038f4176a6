"""State that all overrides of Faust share, and the callback that stops the worker after an error."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from faust.transport.drivers import aiokafka as driver
from faust.types import TP

from schemas.errors import BrokerEmptied
from streams.kafka.clients.broker import NOT_ALLOWED
from streams.kafka.commit.attempts import Attempts
from streams.kafka.commit.marks import Progress
from streams.kafka.commit.outbox import Outbox
from streams.kafka.commit.waiters import Waiters
from tables.windows.window_stores import WindowStores

log = logging.getLogger(__name__)


class Lost(NamedTuple):
    """Records that were deleted before they were read: offsets from `start` up to, not including, `end`.

    `next_at` is the Kafka timestamp (epoch ms) of the oldest record that is left; None if there is none.
    """

    topic: str
    partition: int
    start: int
    end: int
    next_at: int | None


class HotState:
    """Installed topics and stores, the state of partitions, and callbacks. All overrides share this object."""

    def __init__(self, stores: WindowStores | None, isolation_level: str) -> None:
        self.isolation_level = isolation_level
        self.topics: set[str] = set()
        #: The names of the tables' changelogs. These topics exist when the app starts.
        self.changelogs: set[str] = set()
        #: The number of assignments of partitions. If it changes during an `await`, partitions were reassigned.
        self.assignments = 0
        #: Recreated topics. The group's offsets of such a topic may belong to the deleted log: Kafka deletes these
        #: offsets, but perhaps only after the topic was recreated. So an offset counts only if this worker has
        #: committed it.
        self.started_over: frozenset[str] = frozenset()
        self.outbox = Outbox()
        self.outbox.on_not_allowed = partial(self.halt, where="the due records")
        #: The stores of the tables' rows on disk; None if the worker has none.
        self.stores = self.outbox.stores = stores
        #: Called before the stores of partitions are opened. It may fetch their rows from a faster source than their
        #: changelogs.
        self.bring_windows: Callable[[Sequence[int]], Awaitable[None]] | None = None
        self.outbox.on_disk_failure = partial(self.halt, where="windows")
        self.attempts = Attempts()
        self._progress: dict[str, Progress] = {}
        self.effects: dict[tuple[TP, int], asyncio.Future[Any]] = {}
        self.waiters = Waiters()
        #: By partition, the offset before which changes count as readable, although effects may still be pending.
        self._readable: dict[TP, int] = {}
        #: Requests in flight for the end offsets of the log, by topic.
        self._asking_ends: dict[str, asyncio.Future[dict[int, int]]] = {}
        self.on_seek: list[Callable[[], Awaitable[None]]] = []
        self.on_reconnect: list[Callable[[], Awaitable[None]]] = []
        self.before_commit: list[Callable[[], Awaitable[None]]] = []
        self.on_lost: list[Callable[[Lost], None]] = []
        self.halted: BaseException | None = None
        self._halted = asyncio.Event()

    def start_over(self, tp: TP) -> None:
        """Forget the offset before which the partition's records are in the tables. Then all records count as new."""
        if tp.topic in self._progress:
            self._progress[tp.topic].start_over(tp.partition)

    def forget_readable(self) -> None:
        """Forget readable offsets, and end all waits. Call this if partitions are assigned, revoked or sought."""
        self._readable.clear()
        self.waiters.moved()

    def halt(self, exc: BaseException, where: str) -> None:
        """Stop the worker with this error. From now on, nothing is acknowledged or committed.

        Records that are being processed are read again after a restart. Only the first error counts. `where` is the
        place of the error, for the log.
        """
        if self.halted is None:
            self.halted = exc
            if isinstance(exc, BrokerEmptied):  # the worker's command logs the error, and restarts the worker
                log.info("%s: the worker starts over: %s", where, exc)
            elif not isinstance(exc, NOT_ALLOWED):  # `BrokerLink.lacking` finds the missing right
                log.critical("%s: the worker stops, nothing is lost: %s: %s", where, type(exc).__name__, exc)
            self._halted.set()

    async def until_halted(self) -> None:
        """Wait for the error with which `halt` is called, and raise it."""
        await self._halted.wait()
        assert self.halted is not None
        raise self.halted


class Transport(driver.Transport):
    """The base class of `ConsumingTransport`. `HotPath` sets `hot`, which the consumer and its thread use."""

    hot: HotState
