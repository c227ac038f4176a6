"""Watches the cluster's brokers: asks each one, over a connection of its own, whether it answers.

The clients go on with the remaining brokers, and do not report one that is away.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from typing import Any, Protocol

import aiokafka.errors
from aiokafka.conn import AIOKafkaConnection, collect_hosts, create_conn
from aiokafka.protocol.metadata import MetadataRequest

from schemas.settings import KafkaSettings
from schemas.times import iso, now_ms
from streams.kafka.clients.broker import client_options
from streams.runtime.outages import Outage, Told

log = logging.getLogger(__name__)

#: A broker that is silent for this long does not answer.
ANSWER_SECONDS = 5.0
#: A broker is away after this many unanswered requests in a row: a single one may be our own delay.
AWAY_AFTER = 2
#: A broker that is away, and not listed by the others, for this long was removed from the cluster.
GONE_SECONDS = 3600.0

Address = tuple[str, int]


class Brokers(Protocol):
    """Asks brokers for the addresses of all brokers of the cluster."""

    async def listed_by(self, address: Address) -> list[Address]:
        """Return the brokers that this broker lists. Raises `OSError`, `TimeoutError` or `KafkaError`."""

    def close(self) -> None:
        """Close all connections."""


class BrokerWatch:
    """Logs when a broker goes away (WARNING, its address and since when), once a minute, and when it is back."""

    def __init__(
        self,
        kafka: KafkaSettings,
        brokers: Brokers | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        now: Callable[[], int] = now_ms,
    ) -> None:
        self._brokers = brokers or Connections(kafka)
        self._monotonic, self._now = monotonic, now
        self._configured = {(host, port) for host, port, _ in collect_hosts(kafka.bootstrap_servers)}
        self._listed: set[Address] = set()
        self._watched = {address: self._broker() for address in self._configured}

    async def look(self) -> None:
        """Ask all brokers, and log what has changed."""
        watched = dict(self._watched)
        answers = await asyncio.gather(*(self._ask(address) for address in watched))
        if listed := {address for answer in answers if isinstance(answer, list) for address in answer}:
            self._listed = listed
        for (address, broker), answer in zip(watched.items(), answers, strict=True):
            self._tell(address, broker, "" if isinstance(answer, list) else answer)
            if self._needless(address, broker):
                del self._watched[address]
        for address in self._listed - self._watched.keys():
            self._watched[address] = self._broker()

    def close(self) -> None:
        """Stop watching, and close all connections."""
        self._brokers.close()

    def _broker(self) -> _Broker:
        return _Broker(Outage(self._monotonic), self._now())

    async def _ask(self, address: Address) -> list[Address] | str:
        """Return the brokers that this one lists, or why it does not answer."""
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                return await self._brokers.listed_by(address)
        except TimeoutError:
            return f"no answer within {ANSWER_SECONDS:g} s"
        except (aiokafka.errors.KafkaError, OSError) as exc:
            return f"{type(exc).__name__}: {exc}"

    def _tell(self, address: Address, broker: _Broker, why: str) -> None:
        heard, name = broker.heard, "{}:{}".format(*address)
        if not why:
            broker.silent, broker.heard = 0, self._now()
        else:
            broker.silent += 1
        match broker.outage.seen(amiss=broker.silent >= AWAY_AFTER):
            case Told.BEGINS:
                log.warning("Kafka broker %s has not answered since %s: %s", name, iso(broker.heard), why)
            case Told.GOES_ON:
                log.warning("Kafka broker %s has still not answered since %s: %s", name, iso(broker.heard), why)
            case Told.IS_OVER:
                log.info("Kafka broker %s answers again, after %.0f s", name, (broker.heard - heard) / 1000)

    def _needless(self, address: Address, broker: _Broker) -> bool:
        """Whether this is another address of a listed broker, or a broker that was removed from the cluster."""
        if address in self._listed:
            return False
        if not broker.silent:
            return bool(self._listed)
        if address in self._configured or broker.outage.seconds < GONE_SECONDS:
            return False
        log.info("Kafka broker %s:%d is no longer part of the cluster", *address)
        return True


class _Broker:
    """When a broker last answered (epoch ms), and how many requests it has not answered since."""

    __slots__ = ("heard", "outage", "silent")

    def __init__(self, outage: Outage, heard: int) -> None:
        self.outage, self.heard, self.silent = outage, heard, 0


class Connections:
    """A connection to each broker, recreated if it is broken."""

    def __init__(self, kafka: KafkaSettings) -> None:
        self._options: dict[str, Any] = client_options(kafka)
        del self._options["bootstrap_servers"]
        self._open: dict[Address, AIOKafkaConnection] = {}

    async def listed_by(self, address: Address) -> list[Address]:
        connection = self._open.get(address)
        if connection is None or not connection.connected():
            connection = self._open[address] = await create_conn(
                *address, **self._options, request_timeout_ms=round(ANSWER_SECONDS * 1000)
            )
        try:
            answer = await connection.send(MetadataRequest([], allow_auto_topic_creation=False))
        except BaseException:
            self._open.pop(address, None)  # `close` may have been called meanwhile
            connection.close()
            raise
        return [(host, port) for _, host, port, *_ in answer.brokers]

    def close(self) -> None:
        for connection in self._open.values():
            with contextlib.suppress(OSError):
                connection.close()
        self._open.clear()
