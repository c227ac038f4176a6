"""Reads and writes the topic of API tokens, which every worker follows, and which `siltstone token` writes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import aclosing
from functools import partial
from typing import Any

import aiokafka
import aiokafka.errors
from pydantic import ValidationError

from schemas.errors import SettingsError, SiltstoneError
from schemas.rights import Right
from schemas.settings import KafkaSettings
from schemas.tokens import TokenRecord
from schemas.topic_specs import tokens_spec
from streams.kafka.clients.broker import admin_client, consumer_options, create_missing, translated
from streams.kafka.clients.log_reader import bounds_of, ends, records_between
from streams.kafka.clients.producing import started_producer

log = logging.getLogger(__name__)

#: The maximum number of milliseconds that one fetch waits for records.
FETCH_MS = 300
#: Seconds to wait after a failure before the topic is read again.
AGAIN_SECONDS = 1.0

#: A function that is called with a token's id and its record. The record is None if it was deleted from the topic.
Told = Callable[[str, TokenRecord | None], None]


async def ensure_tokens_topic(kafka: KafkaSettings) -> None:
    """Create the topic of tokens if it is missing.

    Raises `BrokerUnavailable`. Raises `SettingsError` if it is missing and `kafka.create_topics` is false.
    """
    spec = tokens_spec(kafka)
    if kafka.create_topics:
        await create_missing(kafka, [spec])
        return
    async with admin_client(kafka) as admin:
        if spec.name not in await admin.list_topics():
            raise SettingsError(
                [
                    f"kafka.create_topics: is false, but topic {spec.name} does not exist: create it with one "
                    "partition and cleanup.policy=compact"
                ]
            )


async def all_tokens(kafka: KafkaSettings) -> list[TokenRecord]:
    """Return every token, oldest first, and create the topic if it is missing.

    Raises `BrokerUnavailable`, `NotAllowed` and `SettingsError`.
    """
    await ensure_tokens_topic(kafka)
    return await kept_tokens(kafka)


async def kept_tokens(kafka: KafkaSettings) -> list[TokenRecord]:
    """Return every token, oldest first. The topic must exist. Raises `BrokerUnavailable` and `NotAllowed`."""
    topic, found = tokens_spec(kafka).name, dict[str, TokenRecord]()
    async with aclosing(records_between(kafka, topic, 0, *await bounds_of(kafka, topic, 0))) as batches:
        async for batch in batches:
            _tell(batch, partial(_note, found))
    return sorted(found.values(), key=lambda one: (one.created_at, one.id))


async def write_token(kafka: KafkaSettings, record: TokenRecord) -> None:
    """Write a record of a token, which replaces the token's earlier record.

    Raises `BrokerUnavailable`, `NotAllowed` and `SettingsError`.
    """
    await ensure_tokens_topic(kafka)
    topic, producer = tokens_spec(kafka).name, await started_producer(kafka)
    try:
        await producer.send_and_wait(topic, record.model_dump_json().encode(), key=record.id.encode(), partition=0)
    except aiokafka.errors.KafkaError as exc:
        raise await translated(kafka, exc, Right("WRITE", "topic", topic)) from exc
    finally:
        await producer.stop()


class TokenFollower:
    """Follows the topic of tokens, with a consumer that is in no consumer group.

    It reads the whole topic and passes all tokens to `whole`. After that it passes each new record to `told`. After a
    failure it reads the topic from the beginning again, and calls `whole` only at the end of the topic. Otherwise a
    revoked token could become valid again for a moment, because its revocation is a later record.
    """

    def __init__(self, kafka: KafkaSettings, whole: Callable[[dict[str, TokenRecord]], None], told: Told) -> None:
        self._kafka, self._whole, self._told = kafka, whole, told
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.create_task(self._follow_again())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _follow_again(self) -> None:
        while True:
            try:
                await self._follow()
            except (aiokafka.errors.KafkaError, SiltstoneError, OSError, TimeoutError) as exc:
                log.warning(
                    "tokens: new revocations have no effect until this is repaired: %s", exc or type(exc).__name__
                )
            await asyncio.sleep(AGAIN_SECONDS)

    async def _follow(self) -> None:
        await ensure_tokens_topic(self._kafka)
        tp = aiokafka.TopicPartition(tokens_spec(self._kafka).name, 0)
        consumer = aiokafka.AIOKafkaConsumer(
            **consumer_options(self._kafka), group_id=None, enable_auto_commit=False, auto_offset_reset="earliest"
        )
        try:
            await consumer.start()
            consumer.assign([tp])
            end = (await ends(consumer, [tp]))[tp]
            consumer.seek(tp, (await consumer.beginning_offsets([tp]))[tp])
            found = dict[str, TokenRecord]()
            while await consumer.position(tp) < end:
                for batch in (await consumer.getmany(tp, timeout_ms=FETCH_MS)).values():
                    _tell(batch, partial(_note, found))
            self._whole(found)
            while True:
                for batch in (await consumer.getmany(tp, timeout_ms=FETCH_MS)).values():
                    _tell(batch, self._told)
        finally:
            await consumer.stop()


def _note(found: dict[str, TokenRecord], identity: str, record: TokenRecord | None) -> None:
    if record is None:
        found.pop(identity, None)
    else:
        found[identity] = record


def _tell(records: Any, told: Told) -> None:
    for record in records:
        identity = (record.key or b"").decode(errors="replace")
        try:
            token = None if record.value is None else TokenRecord.model_validate_json(record.value)
            if token is not None and token.id != identity:
                raise ValueError("the key is not the id")
        except (ValidationError, ValueError) as exc:
            log.warning(
                "%s[%d]@%d is not a token, and is skipped: %s",
                record.topic,
                record.partition,
                record.offset,
                type(exc).__name__,
            )
            continue
        told(identity, token)
