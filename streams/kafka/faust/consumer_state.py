"""What the consumer's overrides know of its partitions."""

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

#: Before a leader that did not answer is asked once more.
ASK_AGAIN_SECONDS = 1.0


class ConsumerState(driver.Consumer):
    """The base of the overrides: each of them is a class over this one."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._hot: HotState = cast(Transport, self.transport).hot
        self._ledgers: defaultdict[TP, Ledger] = defaultdict(Ledger)
        self._seeks = 0
        #: Where the last recovery began to read its changelogs, and how many have begun.
        self._restored_from: Mapping[TP, int] = {}
        self._recoveries = 0
        self._connections: dict[Any, Any] = {}
        self._expected: dict[TP, int] = {}
        self._told_lost: dict[TP, int] = {}
        self._back_since: dict[TP, float] = {}
        self.sought: set[TP] = set()
        self.from_start: set[TP] = set()

    def _new_consumer_thread(self) -> ConsumerThread:
        return ConsumerThread(self, loop=self.loop, beacon=self.beacon)

    @abstractmethod
    async def _seek_to_start(self) -> None:
        """Seek all assigned partitions to where they are read from."""

    def done(self, tp: TP) -> int:
        """Records of the partition before this offset are processed."""
        return self._ledgers[tp].committable() or self.kept(tp)

    def kept(self, tp: TP) -> int:
        """Records of the partition before this offset are committed, or were there before we began."""
        return self._committed_offset.get(tp) or self._ledgers[tp].start

    def is_stale(self, message: Any) -> bool:
        """Whether the partitions may have moved since the message was fetched."""
        return message.generation_id != self.app.consumer_generation_id or not self.app.flow_control.is_active()

    async def _earliest(self, partitions: Iterable[TP]) -> Mapping[TP, int]:
        """Asked until it is answered: the partition's leader was there a moment ago."""
        while True:
            try:
                return await self.earliest_offsets(*partitions)
            except NOT_ALLOWED:
                raise
            except KafkaError as exc:
                log.error("the log's first offsets are not to be had: %s", exc)
                await asyncio.sleep(ASK_AGAIN_SECONDS)

    async def _is_still_the_same_log(self, checks: Sequence[Callable[[], Awaitable[None]]]) -> bool:
        """Where it is not, the offsets that we hold are of another one: nothing that was fetched may be used."""
        try:
            for check in checks:
                await check()
        except SiltstoneError as exc:
            self._hot.halt(exc, "the log")
        return self._hot.halted is None
