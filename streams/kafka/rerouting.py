"""Produces misrouted records, those with a wrong key or partition, again, once, with the right key."""

from __future__ import annotations

from typing import Any

from schemas.topics import REROUTED_HEADER, route_of
from streams.kafka.commit.outbox import Outbox
from streams.telemetry.metrics import Metrics

#: Larger headers are dropped: with a large value, the record might exceed what a broker accepts.
MAX_HEADERS_BYTES = 64 * 1024


class Rerouting:
    """Produces misrouted records again, with their headers and their time. Correctly keyed records cost nothing.

    The time matters: a message without a time of its own has that of its record, and its id follows from it.
    """

    def __init__(self, outbox: Outbox, metrics: Metrics, partitions: int) -> None:
        self._outbox, self._metrics, self.partitions = outbox, metrics, partitions

    def is_misrouted(self, record: Any, user_id: str) -> bool:
        """Whether the record has not the user's key and partition, and was not rerouted already."""
        if (record.key, record.partition) == route_of(user_id, self.partitions):
            return False  # before a generator is created: this runs for every record
        return not any(name == REROUTED_HEADER for name, _ in record.headers)

    def reroute(self, record: Any, user_id: str) -> bool:
        """Produce a misrouted record again with the right key. True if it was misrouted: do not use it here."""
        if not self.is_misrouted(record, user_id):
            return False
        key, partition = route_of(user_id, self.partitions)
        size = sum(len(name) + len(value or b"") for name, value in record.headers)
        headers = record.headers if size <= MAX_HEADERS_BYTES else ()
        self._outbox.post(
            record.topic,
            record.value,
            key=key,
            partition=partition,
            timestamp=None if record.timestamp is None or record.timestamp < 0 else record.timestamp,
            headers=[*headers, (REROUTED_HEADER, b"1")],
        )
        self._metrics.rerouted.labels(record.topic).inc()
        return True
