"""What the overrides of Faust share."""

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

    `next_at` is the Kafka timestamp (epoch ms) of the oldest one that is there; None where none is.
    """

    topic: str
    partition: int
    start: int
    end: int
    next_at: int | None


class HotState:
    """What the overrides share: what is installed, what happened, and whom to tell."""

    def __init__(self, stores: WindowStores | None, isolation_level: str) -> None:
        self.isolation_level = isolation_level
        self.topics: set[str] = set()
        #: The tables' topics. They are there when the app starts.
        self.changelogs: set[str] = set()
        #: How often partitions were assigned. What was read before an `await` is of the assignment of that moment.
        self.assignments = 0
        #: Topics that are another log than the group's offsets may be of: Kafka forgets those of a topic that is
        #: deleted, but perhaps after the next of its name was made. None counts before this worker commits one.
        self.begun_anew: frozenset[str] = frozenset()
        self.outbox = Outbox()
        self.outbox.on_not_allowed = partial(self.halt, where="what is due")
        #: Where the tables' rows are on the disk.
        self.stores = self.outbox.stores = stores
        #: Brings the rows of partitions that are opened, where anything is nearer than their changelogs.
        self.bring_windows: Callable[[Sequence[int]], Awaitable[None]] | None = None
        self.outbox.on_disk_failure = partial(self.halt, where="windows")
        self.attempts = Attempts()
        self._progress: dict[str, Progress] = {}
        self.effects: dict[tuple[TP, int], asyncio.Future[Any]] = {}
        self.waiters = Waiters()
        #: Of partitions in which a batch is readable and something of it is still under way: up to which offset.
        self._readable: dict[TP, int] = {}
        #: Requests to the broker that are under way, by topic: how far the log reaches.
        self._asking_ends: dict[str, asyncio.Future[dict[int, int]]] = {}
        self.on_seek: list[Callable[[], Awaitable[None]]] = []
        self.on_reconnect: list[Callable[[], Awaitable[None]]] = []
        self.before_commit: list[Callable[[], Awaitable[None]]] = []
        self.on_lost: list[Callable[[Lost], None]] = []
        self.halted: BaseException | None = None
        self._halted = asyncio.Event()

    def begin_anew(self, tp: TP) -> None:
        """Its records are those of another log."""
        if tp.topic in self._progress:
            self._progress[tp.topic].begin_anew(tp.partition)

    def forget_readable(self) -> None:
        """Partitions are assigned or sought again: who waits is told so."""
        self._readable.clear()
        self.waiters.moved()

    def halt(self, exc: BaseException, where: str) -> None:
        """Nothing is acknowledged or committed from now on: what was being processed is read again later."""
        if self.halted is None:
            self.halted = exc
            if isinstance(exc, BrokerEmptied):  # the command that runs the worker says so, and restarts it
                log.info("%s: the worker starts over: %s", where, exc)
            elif not isinstance(exc, NOT_ALLOWED):  # which right it is, is found out, and told
                log.critical("%s: the worker stops, nothing is lost: %s: %s", where, type(exc).__name__, exc)
            self._halted.set()

    async def until_halted(self) -> None:
        """Wait for a fault that must not be passed over; raises it."""
        await self._halted.wait()
        assert self.halted is not None
        raise self.halted


class Transport(driver.Transport):
    """Set on an app by `HotPath`; `ConsumingTransport` sets its consumer."""

    hot: HotState
