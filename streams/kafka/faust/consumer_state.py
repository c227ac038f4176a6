"""State of the consumer's partitions that its overrides share."""

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

#: Pause before asking a leader again that did not answer.
ASK_AGAIN_SECONDS = 1.0


class ConsumerState(driver.Consumer):
    """The base class of all overrides."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._hot: HotState = cast(Transport, self.transport).hot
        self._ledgers: defaultdict[TP, Ledger] = defaultdict(Ledger)
        self._seeks = 0
        #: Where the last recovery started to read its changelogs, and the number of recoveries so far.
        self._restored_from: Mapping[TP, int] = {}
        self._recoveries = 0
        self._connections: dict[Any, Any] = {}
        self._expected: dict[TP, int] = {}
        self._told_lost: dict[TP, int] = {}
        self._back_since: dict[TP, float] = {}
        self.sought: set[TP] = set()
        self.from_start: set[TP] = set()

    def _new_consumer_thread(self) -> ConsumerThread:
        """Create our thread: Faust names its class in this method."""
        return ConsumerThread(self, loop=self.loop, beacon=self.beacon)

    @abstractmethod
    async def _seek_to_start(self) -> None:
        """Seek each assigned partition to its first offset to read."""

    def done(self, tp: TP) -> int:
        """Return the offset before which all records of the partition are processed."""
        return self._ledgers[tp].committable() or self.kept(tp)

    def kept(self, tp: TP) -> int:
        """Return the offset before which all records are committed, or lie before our start."""
        return self._committed_offset.get(tp) or self._ledgers[tp].start

    def is_stale(self, message: Any) -> bool:
        """Whether the partitions may have moved since the message was fetched."""
        return message.generation_id != self.app.consumer_generation_id or not self.app.flow_control.is_active()

    async def _earliest(self, partitions: Iterable[TP]) -> Mapping[TP, int]:
        """Return the first offsets. Retries until the broker answers: the leaders were there a moment ago."""
        while True:
            try:
                return await self.earliest_offsets(*partitions)
            except NOT_ALLOWED:
                raise
            except KafkaError as exc:
                log.error("the log's first offsets cannot be fetched: %s", exc)
                await asyncio.sleep(ASK_AGAIN_SECONDS)

    async def _is_still_the_same_log(self, checks: Sequence[Callable[[], Awaitable[None]]]) -> bool:
        """Halt and return False if a check fails: our offsets are of another log, so fetched records are unusable."""
        try:
            for check in checks:
                await check()
        except SiltstoneError as exc:
            self._hot.halt(exc, "the log")
        return self._hot.halted is None
