"""Starts producers whose records are acknowledged by all in-sync replicas.

If the broker supports idempotence, a record that is sent again after a time-out is written only once.
"""

from __future__ import annotations

import logging
from typing import Any

import aiokafka
import aiokafka.errors

from schemas.errors import SiltstoneError
from schemas.settings import KafkaSettings
from streams.kafka.clients.broker import client_options, translated

log = logging.getLogger(__name__)

#: Errors if no broker answers. A second attempt, without idempotence, would fail as well, so it is not made.
UNREACHABLE = (aiokafka.errors.KafkaConnectionError, aiokafka.errors.KafkaTimeoutError, OSError)


async def started_producer(kafka: KafkaSettings, **options: Any) -> aiokafka.AIOKafkaProducer:
    """Return a started producer. The caller must stop it.

    A record is acknowledged when all in-sync replicas have it. With aiokafka's default, the partition's leader alone
    would acknowledge it, and the record would be lost if that leader failed. With idempotence, a record that is sent
    again after a time-out is not written twice. The embedded broker refuses idempotence (by an error without a name),
    and so does a cluster if we lack the right to it. In both cases, `kafka.idempotence` decides whether a producer
    without idempotence is used.

    Raises `BrokerUnavailable`; `SiltstoneError` if idempotence is refused but required.
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
