"""Records that agents post or send, until the broker has acknowledged them."""

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


#: Topic, value, key, partition, timestamp (epoch ms), headers.
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
    """Posts, sends, and sends again.

    `when_refused` gets each record that the broker refuses for good, and may post another in its place; without
    `when_refused` the record stays due.
    """

    def __init__(self) -> None:
        self.when_refused: Callable[[RefusedRecord], None] | None = None
        self._producer: Producer | None = None
        self._posted: deque[Arguments] = deque()
        self._pending: list[Sent] = []
        self._lock: asyncio.Lock | None = None
        self._delivery: asyncio.Lock | None = None
        #: The topic of what is being sent.
        self._flushing_to = ""

    def connect(self, producer: Producer) -> None:
        """Use this started producer."""
        if producer is not self._producer:
            self._producer, self._lock, self._delivery = producer, asyncio.Lock(), asyncio.Lock()

    @property
    def connected(self) -> bool:
        """Whether there is a producer to send with."""
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
        """Queue a record, sent before any change that tables hold now is written; at `timestamp` (epoch ms), or now.

        Post the records that follow from a change in the same step as the change: with an await in between, the
        change could be written and the worker could die before they are sent.
        """
        self._posted.append((topic, value, key, partition, timestamp, headers))

    async def deliver(self) -> None:
        """Send the posted records, in their order."""
        assert self._producer is not None, "the producer has not started"
        assert self._delivery is not None
        async with self._delivery:
            while self._posted:
                arguments = self._posted[0]  # queued until it is sent: a concurrent flush must not miss it
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
        """Send now; the offset of the record that caused this one is not committed before the acknowledgement."""
        assert self._producer is not None, "the producer has not started"
        acknowledged = await self._producer.send(topic, value, key, partition, headers=headers)
        self._pending.append(Sent((topic, value, key, partition, None, headers), acknowledged))
        return acknowledged

    async def produce(
        self, topic: str, value: bytes | None, *, key: bytes, headers: Headers = ()
    ) -> asyncio.Future[Any]:
        """Send for a caller that awaits the acknowledgement and handles a refusal: no commit waits for it."""
        assert self._producer is not None, "the producer has not started"
        return await self._producer.send(topic, value, key, None, headers=headers)

    def abandon(self) -> None:
        """Stop tracking unacknowledged sends; they are sent again after a restart."""
        for sent in self._pending:
            sent.acknowledged.add_done_callback(passed_over)

    async def _acknowledged(self, sent: Sequence[Sent]) -> None:
        """Wait for the broker's acknowledgements. Raises the first error."""
        for record in sent:
            self._flushing_to = record.arguments[0]
            if not record.acknowledged.done():  # most are done, and a shield is not free
                await asyncio.shield(record.acknowledged)
            record.acknowledged.result()

    async def _send_again(self) -> None:
        """Send failed records once more; the next attempt waits for them.

        A record may have been refused for good because of another record in its batch: it is sent alone, and only if
        that is refused, too, it is the cause.
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
        """Send a failed record again. Return what is due in its place: the record, unless it is refused for good."""
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
    """Mark its exception as retrieved: asyncio would log each one, hundreds of lines for one cause."""
    if not acknowledged.cancelled():
        acknowledged.exception()
