"""Producers whose records are acknowledged by all replicas that are in sync, and written once where a broker can."""

from __future__ import annotations

import logging
from typing import Any

import aiokafka
import aiokafka.errors

from schemas.errors import SiltstoneError
from schemas.settings import KafkaSettings
from streams.kafka.clients.broker import client_options, translated

log = logging.getLogger(__name__)

#: Nobody to ask: another attempt, or one without idempotence, would find nobody either.
UNREACHABLE = (aiokafka.errors.KafkaConnectionError, aiokafka.errors.KafkaTimeoutError, OSError)


async def started_producer(kafka: KafkaSettings, **options: Any) -> aiokafka.AIOKafkaProducer:
    """A producer that has started; whoever asked for it stops it.

    aiokafka's own default is that a partition's leader alone has a record when it is acknowledged, and a leader that
    falls takes it along. With idempotence, what is sent again after a time-out is not written again. The embedded
    broker refuses that (with an error of no name), and a cluster's rights may: `kafka.idempotence`.
    Raises `BrokerUnavailable`, or `SiltstoneError` where idempotence is refused and must be.
    """
    if kafka.idempotence != "never":
        try:
            return await _started(kafka, enable_idempotence=True, **options)
        except aiokafka.errors.KafkaError as exc:
            if kafka.idempotence == "always":
                raise SiltstoneError(
                    f"the broker gives no id for an idempotent producer ({type(exc).__name__}): allow the user "
                    "IDEMPOTENT_WRITE on the cluster, or set kafka.idempotence to auto"
                ) from exc
            log.info("the broker gives no id for an idempotent producer (%s)", type(exc).__name__)
    try:
        return await _started(kafka, **options)
    except aiokafka.errors.KafkaError as exc:
        raise await translated(kafka, exc) from exc


async def _started(kafka: KafkaSettings, **options: Any) -> aiokafka.AIOKafkaProducer:
    producer = aiokafka.AIOKafkaProducer(**client_options(kafka), acks="all", **options)
    try:
        await producer.start()
    except UNREACHABLE as exc:
        await producer.stop()
        raise await translated(kafka, exc) from exc
    except BaseException:
        await producer.stop()
        raise
    return producer
