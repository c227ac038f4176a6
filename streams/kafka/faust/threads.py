"""The thread of Faust's consumer: fetches, commits, and requests to the group."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Mapping
from typing import Any, cast

import aiokafka
from aiokafka.errors import KafkaError
from aiokafka.protocol.group import JoinGroupRequest
from faust.transport.drivers import aiokafka as driver
from faust.types import TP
from mode.threads import WorkerThread

from streams.kafka.clients.broker import NOT_ALLOWED
from streams.kafka.clients.log_reader import ends
from streams.kafka.faust.shared import Transport

log = logging.getLogger(__name__)

#: Maximum milliseconds for which a broker may hold back the answer to a fetch without records. Each broker gets one
#: fetch at a time, so a partition with an empty buffer waits for the fetch of other partitions. With Faust's 1,500
#: ms, the intake of messages would stall.
FETCH_WAIT_MS = 50

#: The metadata that a worker stores with each committed offset. Other tools that set the group's offsets do not store
#: it.
OURS = "siltstone"
#: Metadata that is committed to test whether the broker keeps metadata.
TRIED = "siltstone?"

UNKNOWN_MEMBER_ID = JoinGroupRequest.UNKNOWN_MEMBER_ID


class DaemonThread(WorkerThread):
    """A daemon thread, which does not keep the process alive.

    If the broker does not answer, Faust's own thread would prevent a stopped worker from ending.
    """

    def __init__(self, service: Any, **kwargs: Any) -> None:
        super().__init__(service, **kwargs)
        self.daemon = True


class ConsumerThread(driver.AIOKafkaConsumerThread):
    """The thread in which aiokafka's consumer runs. Faust's consumer creates it."""

    Worker = DaemonThread

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        #: Committed offsets that the broker has reported or acknowledged.
        self.known: dict[TP, int] = {}
        #: Partitions in which this worker has committed an offset.
        self.committed: set[TP] = set()
        #: Committed offsets that the last seek found without our metadata. If the broker keeps metadata, another tool
        #: has set them.
        self.others: Mapping[TP, int] = {}
        #: Committed offsets that another tool has set: `others` if the broker keeps metadata, otherwise empty.
        self.moved: Mapping[TP, int] = {}
        self._keeps: bool | None = None

    def _create_worker_consumer(self, transport: Any) -> aiokafka.AIOKafkaConsumer:
        """Set options that Faust does not expose: the wait of a fetch, the isolation level, the metadata of commits.

        Faust's fetches would delay each other by 1.5 s, and would bring aborted records. Its commits have no
        metadata, so offsets that an operator has set could not be distinguished from ours.
        """
        consumer = super()._create_worker_consumer(transport)
        consumer._fetch_max_wait_ms = FETCH_WAIT_MS
        consumer._isolation_level = cast(Transport, self.transport).hot.isolation_level
        commit = consumer.commit

        async def signed(offsets: Mapping[Any, Any]) -> None:
            await commit({tp: (committed.offset, OURS) for tp, committed in offsets.items()})

        consumer.commit = signed
        return consumer

    async def _wakeup_timer_in_thread(self) -> None:
        """Wake the worker's event loop without a coroutine.

        Faust schedules a coroutine, which would never be awaited if the loop is closed.
        """
        self.last_wakeup_at = time.monotonic()
        with contextlib.suppress(RuntimeError):
            self.parent_loop.call_soon_threadsafe(int)

    async def _commit(self, offsets: Mapping[TP, int]) -> bool:
        """Commit the offsets of assigned partitions, and note those that the broker has accepted.

        Faust also notes refused offsets as committed.
        """
        ours = self.assignment()
        taken = {tp: offset for tp, offset in offsets.items() if tp in ours}
        if not taken or not await super()._commit(taken):
            return False
        self.known |= taken
        self.committed |= taken.keys()
        return True

    async def seek_to_committed(self) -> Mapping[TP, int]:
        """Seek to the committed offsets, and find those without our metadata.

        Offsets without it were set by an operator, who wants the records from there on to be read. Raises
        `IllegalStateError` if partitions are revoked meanwhile.
        """
        consumer = self._ensure_consumer()
        if not (ours := [driver.ensure_aiokafka_TP(tp) for tp in consumer.assignment()]):
            return {}
        committed = await self.call_thread(consumer.seek_to_committed, *ours)
        self.known |= {TP(*tp): offset for tp, offset in committed.items() if offset}
        found = await self.call_thread(consumer._coordinator.fetch_committed_offsets, ours)
        self.others = {TP(*tp): by.offset for tp, by in found.items() if by.offset > 0 and by.metadata != OURS}
        self.moved = self.others if await self.call_thread(self._keeps_metadata, self.others) else {}
        return cast(Mapping[TP, int], committed)

    async def _keeps_metadata(self, offsets: Mapping[TP, int]) -> bool:
        """True if the broker keeps the metadata of offsets. The embedded broker does not.

        The test commits one of these offsets again, with the metadata `TRIED`.
        """
        if not offsets:
            return False
        if self._keeps is None:
            consumer = self._ensure_consumer()
            tp, offset = next((driver.ensure_aiokafka_TP(tp), offset) for tp, offset in offsets.items())
            try:
                await type(consumer).commit(consumer, {tp: (offset, TRIED)})
            except KafkaError as exc:  # partitions are moving: their next owner tests again
                log.info("%s[%d]: it is unknown whether another tool set its offset: %s", tp.topic, tp.partition, exc)
                return False
            self._keeps = (await consumer._coordinator.fetch_committed_offsets([tp]))[tp].metadata == TRIED
        return self._keeps

    async def is_member(self) -> bool:
        """Ask the group's coordinator whether we belong to the group's current generation."""
        coordinator = self._ensure_consumer()._coordinator
        if coordinator.member_id == UNKNOWN_MEMBER_ID:
            return False
        try:
            return bool(await coordinator._do_heartbeat())
        except NOT_ALLOWED:
            raise
        except KafkaError as exc:
            log.error("the group's coordinator refuses a heartbeat: %s", exc)
            return False

    async def _highwaters(self, partitions: list[TP]) -> Mapping[TP, int]:
        """Return the end of each partition, taken from a fetch.

        Tansu's answer to a ListOffsets request may be too low, or may be an offset that does not exist any more. On
        Apache Kafka, both requests give the same end.
        """
        conf, transport = self.app.conf, cast(Transport, self.transport)
        probe = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=driver.server_list(transport.url, transport.default_port),
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            fetch_max_wait_ms=100,
            isolation_level=transport.hot.isolation_level,
            **driver.credentials_to_aiokafka_auth(conf.broker_credentials, conf.ssl_context),
        )
        try:
            await probe.start()
            asked = [driver.ensure_aiokafka_TP(tp) for tp in partitions]
            probe.assign(asked)
            return {TP(*tp): end for tp, end in (await ends(probe, asked)).items()}
        finally:
            await probe.stop()
