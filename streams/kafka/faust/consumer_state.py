"""The state of the consumer's partitions. All overrides of the consumer share it."""

from __future__ import annotations

import asyncio
import logging
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, cast

from aiokafka.errors import KafkaError
from faust.transport.drivers import aiokafka as driver
from faust.types import TP

from schemas.errors import SiltstoneError
from streams.kafka.clients.broker import NOT_ALLOWED
from streams.kafka.commit.ledger import Ledger
from streams.kafka.faust.shared import HotState, Transport
from streams.kafka.faust.threads import ConsumerThread

log = logging.getLogger(__name__)

#: Seconds before a failed request to the leader of a partition is repeated.
ASK_AGAIN_SECONDS = 1.0


class ConsumerState(driver.Consumer):
    """The base class of all overrides of Faust's consumer."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._hot: HotState = cast(Transport, self.transport).hot
        self._ledgers: defaultdict[TP, Ledger] = defaultdict(Ledger)
        self._seeks = 0
        #: The offsets at which the last recovery began to read changelogs, and the number of recoveries so far.
        self._restored_from: Mapping[TP, int] = {}
        self._recoveries = 0
        self._connections: dict[Any, Any] = {}
        self._expected: dict[TP, int] = {}
        self._told_lost: dict[TP, int] = {}
        self._back_since: dict[TP, float] = {}
        self.sought: set[TP] = set()
        self.from_start: set[TP] = set()

    def _new_consumer_thread(self) -> ConsumerThread:
        """Create a `ConsumerThread`. Faust's method creates a thread of Faust's class."""
        return ConsumerThread(self, loop=self.loop, beacon=self.beacon)

    @abstractmethod
    async def _seek_to_start(self) -> None:
        """Seek each assigned partition to the first offset that must be read."""

    def done(self, tp: TP) -> int:
        """Return the offset before which all records of the partition are processed."""
        return self._ledgers[tp].committable() or self.kept(tp)

    def kept(self, tp: TP) -> int:
        """Return the committed offset of the partition; if there is none, the offset at which we began to read."""
        return self._committed_offset.get(tp) or self._ledgers[tp].start

    def is_stale(self, message: Any) -> bool:
        """Return True if partitions may have been reassigned since the message was fetched."""
        return message.generation_id != self.app.consumer_generation_id or not self.app.flow_control.is_active()

    async def _earliest(self, partitions: Iterable[TP]) -> Mapping[TP, int]:
        """Return the first offset of each partition.

        Retries until the broker answers, because the leaders of the partitions answered a moment ago.
        """
        while True:
            try:
                return await self.earliest_offsets(*partitions)
            except NOT_ALLOWED:
                raise
            except KafkaError as exc:
                log.error("the log's first offsets cannot be fetched: %s", exc)
                await asyncio.sleep(ASK_AGAIN_SECONDS)

    async def _is_still_the_same_log(self, checks: Sequence[Callable[[], Awaitable[None]]]) -> bool:
        """Run the checks. If one fails, halt the worker, and return False.

        A failed check means that our offsets belong to another log, so the fetched records cannot be used.
        """
        try:
            for check in checks:
                await check()
        except SiltstoneError as exc:
            self._hot.halt(exc, "the log")
        return self._hot.halted is None
