"""Finds brokers of the cluster that do not answer, by a request to each broker over a separate connection.

If a broker does not answer, the other clients of the worker use another broker and do not report the failure. So this
module logs it.
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

#: A request counts as unanswered if the answer takes longer than this time in seconds.
ANSWER_SECONDS = 5.0
#: A broker counts as away after this number of unanswered requests in a row. A single unanswered request may
#: be caused by a delay of this process.
AWAY_AFTER = 2
#: If a broker has not answered for this number of seconds, and the other brokers do not list it, it counts as removed
#: from the cluster.
GONE_SECONDS = 3600.0

Address = tuple[str, int]


class Brokers(Protocol):
    """Asks brokers for the addresses of all brokers of the cluster."""

    async def listed_by(self, address: Address) -> list[Address]:
        """Return the addresses that the broker at `address` lists. Raises `OSError`, `TimeoutError`, `KafkaError`."""

    def close(self) -> None:
        """Close all connections."""


class BrokerWatch:
    """Logs that a broker is away: when this begins, once a minute while it lasts, and when the broker answers again.

    The warnings have the broker's address and the time of its last answer.
    """

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
        """Send a request to each broker. Log the brokers that do not answer, and the brokers that answer again."""
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
        """Return the broker addresses that the broker lists. If it does not answer, return the reason as a text."""
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
        """Return True if this address need not be watched.

        Either it is a second address of a broker that is watched, or the broker was removed from the cluster.
        """
        if address in self._listed:
            return False
        if not broker.silent:
            return bool(self._listed)
        if address in self._configured or broker.outage.seconds < GONE_SECONDS:
            return False
        log.info("Kafka broker %s:%d is no longer part of the cluster", *address)
        return True


class _Broker:
    """The time of a broker's last answer (`heard`, epoch ms), and the number of unanswered requests since (`silent`).

    Before the first answer, `heard` is the time at which the watch began.
    """

    __slots__ = ("heard", "outage", "silent")

    def __init__(self, outage: Outage, heard: int) -> None:
        self.outage, self.heard, self.silent = outage, heard, 0


class Connections:
    """Keeps one open connection to each broker. The next request replaces a broken connection."""

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
            self._open.pop(address, None)  # `close` may have removed the connection meanwhile
            connection.close()
            raise
        return [(host, port) for _, host, port, *_ in answer.brokers]

    def close(self) -> None:
        for connection in self._open.values():
            with contextlib.suppress(OSError):
                connection.close()
        self._open.clear()
