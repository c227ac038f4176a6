"""A Kafka producer, for services that write chat messages directly to Siltstone's topic instead of over HTTP.

It needs an extra: `pip install siltstone-client[kafka]`.

>>> async def say() -> None:
...     async with MessageProducer("127.0.0.1:9092") as producer:
...         await producer.send({"role": "user", "content": "I live in Oslo"}, user_id="ann", session_id="s1")
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, Self

try:
    import aiokafka
    from aiokafka.admin import AIOKafkaAdminClient
    from aiokafka.errors import KafkaConnectionError, KafkaError, KafkaTimeoutError
    from aiokafka.partitioner import DefaultPartitioner
except ModuleNotFoundError as exc:
    raise ModuleNotFoundError("siltstone_client.kafka needs aiokafka: pip install 'siltstone-client[kafka]'") from exc

from siltstone_client.errors import SiltstoneError
from siltstone_client.messages import Message, Moment, as_json, check, moment, record_of

log = logging.getLogger(__name__)

TOPIC: Final = "siltstone.conversations"
#: The options of aiokafka's producer that callers may not set. With other values, a record could be lost or written
#: twice, or could reach a wrong partition, from which a worker would have to produce it again.
_OURS: Final = (
    "bootstrap_servers",
    "partitioner",
    "key_serializer",
    "value_serializer",
    "acks",
    "enable_idempotence",
)
#: The prefixes of the options for the connection to the broker.
_CONNECTION: Final = ("client_id", "security_protocol", "ssl_context", "sasl_")
_NOBODY: Final = (KafkaConnectionError, KafkaTimeoutError, OSError)


class ProducerError(SiltstoneError):
    """The broker does not answer, has no such topic, or did not accept the record.

    A message with its own `message_id` may be sent again.
    """


class Produced(NamedTuple):
    """A record's place in the log.

    `message_id` is None for the end of a session, and for a message whose id is derived by the worker.
    """

    message_id: str | None
    topic: str
    partition: int
    offset: int


def key_of(user_id: str) -> bytes:
    """The record key of a user: the user's id in UTF-8.

    With this key, Kafka's own partitioner (murmur2) chooses the user's partition.
    """
    if not user_id:
        raise ValueError("user_id: must not be empty")
    return user_id.encode()


class MessageProducer:
    """Produces chat messages to the topic that workers read. All in-sync replicas acknowledge each message.

    `options` are options of aiokafka's producer: `security_protocol`, `ssl_context`, `sasl_…`, `compression_type`,
    `linger_ms`. Each record has the `client_id` in its header `producer`, because workers report the clock skew of
    each producer. Methods raise `ProducerError` if the broker fails, or if the topic is missing. A broker might
    otherwise create the missing topic with another number of partitions than Siltstone's topics have.
    """

    def __init__(self, bootstrap_servers: str, *, topic: str = TOPIC, **options: Any) -> None:
        if taken := sorted(options.keys() & set(_OURS)):
            raise ValueError(f"{', '.join(taken)}: remove this option: MessageProducer sets it, as workers require")
        self._servers, self._topic, self._options = bootstrap_servers, topic, options
        name = options.get("client_id")
        self._headers = [("producer", str(name).encode())] if name else []
        self._producer: Any = None

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Connect to the broker. Raises `ProducerError` if no broker answers, or if the topic is missing.

        If the broker allows idempotence, a record that aiokafka sends again is not written twice.
        """
        try:
            await self._look_for_topic()
            try:
                self._producer = await self._started(enable_idempotence=True)
            except KafkaError as exc:
                if isinstance(exc, _NOBODY):
                    raise
                log.info("the broker gives no id for an idempotent producer (%s)", type(exc).__name__)
                self._producer = await self._started()
        except (KafkaError, OSError) as exc:
            raise ProducerError(f"{self._servers}: {type(exc).__name__}: does a broker listen there?") from exc

    async def stop(self) -> None:
        """Send the pending records, and disconnect."""
        producer, self._producer = self._producer, None
        if producer is not None:
            await producer.stop()

    async def send(self, message: Message, *, user_id: str, session_id: str) -> Produced:
        """Produce one message. When this method returns, the broker has acknowledged the message.

        The fields of a message are those of `Memory.add`. Send the messages of a session in order, one after the
        other. Raises `ValueError` for a message that every worker would refuse.
        """
        record = record_of(message, user_id, session_id)
        check(record)
        identity = record.get("message_id")
        return await self._send(user_id, record, None if identity is None else str(identity))

    async def end_session(self, *, user_id: str, session_id: str, timestamp: Moment | None = None) -> Produced:
        """End the session, now or at `timestamp`."""
        at = moment(datetime.now(UTC) if timestamp is None else timestamp)
        record = {"type": "session_end", "user_id": user_id, "session_id": session_id, "timestamp": at}
        return await self._send(user_id, record, None)

    async def _send(self, user_id: str, record: dict[str, Any], message_id: str | None) -> Produced:
        if self._producer is None:
            raise RuntimeError("the producer has not started: use `async with`, or start()")
        try:
            written = await self._producer.send_and_wait(
                self._topic, as_json(record), key=key_of(user_id), headers=self._headers
            )
        except (KafkaError, OSError) as exc:
            raise ProducerError(f"{self._topic}: the broker did not accept a message: {type(exc).__name__}") from exc
        return Produced(message_id, written.topic, written.partition, written.offset)

    async def _look_for_topic(self) -> None:
        """Raise `ProducerError` if the topic is missing.

        This method lists all topics, because a broker may create a missing topic if it is asked for this topic alone.
        """
        connection = {name: value for name, value in self._options.items() if name.startswith(_CONNECTION)}
        admin = AIOKafkaAdminClient(bootstrap_servers=self._servers, **connection)
        try:
            await admin.start()
            there = await admin.list_topics()
        finally:
            await admin.close()
        if self._topic not in there:
            raise ProducerError(f"{self._servers} has no topic {self._topic}: start a worker, which creates it")

    async def _started(self, **more: Any) -> Any:
        producer = aiokafka.AIOKafkaProducer(
            bootstrap_servers=self._servers, acks="all", partitioner=DefaultPartitioner(), **self._options, **more
        )
        try:
            await producer.start()
        except BaseException:
            await producer.stop()
            raise
        return producer
