"""Sends the records of agents, and keeps each record until the broker has acknowledged it."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, Protocol

from aiokafka.errors import (
    InvalidTimestampError,
    KafkaError,
    MessageSizeTooLargeError,
    PolicyViolationError,
    RecordListTooLargeError,
    UnsupportedForMessageFormatError,
)

from schemas.topics import Headers

log = logging.getLogger(__name__)


#: A broker's errors for a record that it will never accept, however often it is sent.
REFUSED_FOR_GOOD: Final = (
    InvalidTimestampError,
    MessageSizeTooLargeError,
    PolicyViolationError,
    RecordListTooLargeError,
    UnsupportedForMessageFormatError,
)


class Producer(Protocol):
    """The part of `aiokafka.AIOKafkaProducer` that the outbox uses. The futures' results have an `offset`."""

    async def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int | None,
        timestamp_ms: int | None = None,
        *,
        headers: Headers,
    ) -> asyncio.Future[Any]: ...

    def create_batch(self) -> Any: ...

    async def send_batch(self, batch: Any, topic: str, *, partition: int) -> asyncio.Future[Any]: ...


#: The arguments of one send: topic, value, key, partition, timestamp (epoch ms), headers.
Arguments = tuple[str, bytes | None, bytes | None, int | None, int | None, Headers]


class RefusedRecord(NamedTuple):
    """A record, or a table's row, that the broker refuses for good, and the broker's error."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Headers
    error: KafkaError


class Sent(NamedTuple):
    arguments: Arguments
    acknowledged: asyncio.Future[Any]


class Sends:
    """Queues records, sends them, and sends them again after a failure.

    `when_refused` is called with each record that the broker refuses for good, and may post another record in its
    place. If `when_refused` is None, the record is not dropped, and is sent again.
    """

    def __init__(self) -> None:
        self.when_refused: Callable[[RefusedRecord], None] | None = None
        self._producer: Producer | None = None
        self._posted: deque[Arguments] = deque()
        self._pending: list[Sent] = []
        self._lock: asyncio.Lock | None = None
        self._delivery: asyncio.Lock | None = None
        #: The topic of the records that are being sent, or whose acknowledgement is being awaited.
        self._flushing_to = ""

    def connect(self, producer: Producer) -> None:
        """Use this producer, which must have started, for all sends."""
        if producer is not self._producer:
            self._producer, self._lock, self._delivery = producer, asyncio.Lock(), asyncio.Lock()

    @property
    def connected(self) -> bool:
        """True if there is a producer, so that records can be sent."""
        return self._producer is not None

    def post(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        partition: int | None = None,
        timestamp: int | None = None,
        headers: Headers = (),
    ) -> None:
        """Queue a record with this `timestamp` (epoch ms), or with the time at which it is sent.

        It is sent before the current changes of the tables are written to their changelogs. If a change of a table
        causes records, post them without an await after the change. With an await in between, the change could be
        written, and the worker could die before the records are sent.
        """
        self._posted.append((topic, value, key, partition, timestamp, headers))

    async def deliver(self) -> None:
        """Send all posted records to the broker, in the order in which they were posted."""
        assert self._producer is not None, "the producer has not started"
        assert self._delivery is not None
        async with self._delivery:
            while self._posted:
                arguments = self._posted[0]  # kept in the queue until it is sent, so that it is not lost
                topic, value, key, partition, timestamp, headers = arguments
                self._flushing_to = topic
                try:
                    acknowledged = await self._producer.send(topic, value, key, partition, timestamp, headers=headers)
                except REFUSED_FOR_GOOD as exc:
                    self._refuse(arguments, exc)
                else:
                    self._pending.append(Sent(arguments, acknowledged))
                self._posted.popleft()

    async def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        partition: int | None = None,
        headers: Headers = (),
    ) -> asyncio.Future[Any]:
        """Send a record now. No offset is committed before the broker has acknowledged the record."""
        assert self._producer is not None, "the producer has not started"
        acknowledged = await self._producer.send(topic, value, key, partition, headers=headers)
        self._pending.append(Sent((topic, value, key, partition, None, headers), acknowledged))
        return acknowledged

    async def produce(
        self, topic: str, value: bytes | None, *, key: bytes, headers: Headers = ()
    ) -> asyncio.Future[Any]:
        """Send a record, and return the future of its acknowledgement.

        The caller must await this future and handle a refusal, because no commit waits for the record.
        """
        assert self._producer is not None, "the producer has not started"
        return await self._producer.send(topic, value, key, None, headers=headers)

    def abandon(self) -> None:
        """Ignore the results of unacknowledged records. The records are produced again after a restart."""
        for sent in self._pending:
            sent.acknowledged.add_done_callback(passed_over)

    async def _acknowledged(self, sent: Sequence[Sent]) -> None:
        """Wait until the broker has acknowledged all of these records. Raises the first error."""
        for record in sent:
            self._flushing_to = record.arguments[0]
            if not record.acknowledged.done():  # most futures are done, and a shield costs time
                await asyncio.shield(record.acknowledged)
            record.acknowledged.result()

    async def _send_again(self) -> None:
        """Send failed records once more. The next flush waits for their acknowledgements.

        A record may have been refused for good because of another record in its batch. So it is sent alone. Only a
        record that is refused again is given to `when_refused`.
        """
        pending, self._pending = deque(self._pending), []
        due: list[Sent] = []
        try:
            while pending:
                again = await self._sent_again(pending[0])
                pending.popleft()
                due += again
        except Exception as exc:
            topic = pending[0].arguments[0]
            log.error("%s: a record could not be sent again (%s: %s)", topic, type(exc).__name__, exc)
        finally:
            self._pending[:0] = [*due, *pending]

    async def _sent_again(self, sent: Sent) -> list[Sent]:
        """Send a record again if it has failed.

        Return a list with the record's pending send. The list is empty if the record was refused for good.
        """
        assert self._producer is not None
        failed = sent.acknowledged.exception() if sent.acknowledged.done() else None
        if failed is None:
            return [sent]
        topic, value, key, partition, timestamp, headers = sent.arguments
        for_good = isinstance(failed, REFUSED_FOR_GOOD) and self.when_refused is not None
        try:
            again = await self._producer.send(topic, value, key, partition, timestamp, headers=headers)
            if for_good:
                await asyncio.shield(again)
        except REFUSED_FOR_GOOD as exc:
            if not for_good:
                raise
            self._refuse(sent.arguments, exc)
            return []
        return [Sent(sent.arguments, again)]

    def _refuse(self, arguments: Arguments, error: KafkaError) -> None:
        topic, value, key, _, _, headers = arguments
        if self.when_refused is None:
            raise error
        self.when_refused(RefusedRecord(topic, key, value, headers, error))


def passed_over(acknowledged: asyncio.Future[Any]) -> None:
    """Mark the exception of a future as retrieved.

    Otherwise asyncio would log each exception, which are hundreds of lines for one cause.
    """
    if not acknowledged.cancelled():
        acknowledged.exception()
