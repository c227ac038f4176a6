"""Produces many records. At the end of an `async with` block, all of them are acknowledged."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import aiokafka

from schemas.errors import SiltstoneError
from schemas.places import Place
from schemas.rights import Right
from schemas.settings import KafkaSettings
from schemas.topics import Topics
from streams.kafka.access.rights import require_write
from streams.kafka.clients.broker import NOT_ALLOWED, ensure_topics, require_topics, translated
from streams.kafka.clients.producing import started_producer


async def writable(kafka: KafkaSettings, topic: str) -> None:
    """Check that we may write to the topic. If it is missing, create it if `kafka.create_topics` is true.

    Raises `NotAllowed` if we may not write; `SettingsError` if topics are missing and cannot be created;
    `BrokerUnavailable`.
    """
    if not await require_write(kafka, topic):
        await ensure_topics(kafka, check=False)
        if not kafka.create_topics:  # without this check, the producer would wait for the topic, and then fail
            await require_topics(kafka)


class producing:  # noqa: N801  (used like a function: `async with producing(kafka)`)
    """A producer for one topic (by default `conversations`).

    At the end of the `async with` block, all sent records are acknowledged. After the block, `ends` has,
    by partition, the offset after the newest sent record.
    """

    def __init__(self, kafka: KafkaSettings, topic: str | None = None) -> None:
        self._kafka = kafka
        self._topic = topic or Topics.with_prefix(kafka.topic_prefix).conversations
        self._sent: list[asyncio.Future[Any]] = []
        self.ends: dict[int, int] = {}

    async def __aenter__(self) -> producing:
        self._producer = await started_producer(self._kafka, linger_ms=20, max_batch_size=262_144)
        return self

    async def send(self, key: bytes | None, value: bytes | None) -> None:
        """Send one record. Wait if the producer's buffer is full.

        After every 10,000 records, wait until they are acknowledged.
        """
        try:
            self._sent.append(await self._producer.send(self._topic, value, key=key))
        except NOT_ALLOWED as exc:
            raise await self._failed(exc) from exc
        if len(self._sent) >= 10_000:
            await self.settle()

    async def __aexit__(self, *_: object) -> None:
        try:
            await self.settle()
        finally:
            await self._producer.stop()

    async def settle(self) -> None:
        """Wait until all sent records are acknowledged."""
        sent, self._sent = self._sent, []
        for future in sent:
            try:
                record = await future
            except aiokafka.errors.KafkaError as exc:
                raise await self._failed(exc) from exc
            self.ends[record.partition] = max(record.offset + 1, self.ends.get(record.partition, 0))

    async def _failed(self, exc: aiokafka.errors.KafkaError) -> SiltstoneError:
        return await translated(self._kafka, exc, Right("WRITE", "topic", self._topic))


class ByTopic:
    """One producer for each requested topic. At the end of the `async with` block, all records are acknowledged.

    Each call of `of` waits until all earlier records are acknowledged. So if memories are sent first and messages
    second, the memories are in their topic before the messages are in theirs.
    """

    def __init__(self, kafka: KafkaSettings) -> None:
        self._kafka, self._stack = kafka, AsyncExitStack()
        self._producers: dict[str, producing] = {}

    async def __aenter__(self) -> ByTopic:
        return self

    async def of(self, topic: str) -> producing:
        for producer in self._producers.values():
            await producer.settle()
        if topic not in self._producers:
            if self._producers:  # for the first topic, the caller has called `writable`
                await writable(self._kafka, topic)
            self._producers[topic] = await self._stack.enter_async_context(producing(self._kafka, topic))
        return self._producers[topic]

    def last(self) -> list[Place]:
        """Return the place of the last sent record in each topic and partition.

        Call this after the `async with` block.
        """
        return [
            Place(topic, partition, end - 1)
            for topic, producer in self._producers.items()
            for partition, end in producer.ends.items()
        ]

    async def __aexit__(self, *raised: Any) -> None:
        await self._stack.__aexit__(*raised)
