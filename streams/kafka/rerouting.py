"""Records that do not lie where their user's records lie are produced again, once, with the right key."""

from __future__ import annotations

from typing import Any

from schemas.topics import REROUTED_HEADER, route_of
from streams.kafka.commit.outbox import Outbox
from streams.telemetry.metrics import Metrics

#: More are left behind: beside a large value they might be more than a broker takes.
MAX_HEADERS_BYTES = 64 * 1024


class Rerouting:
    """Produces misrouted records again, with their headers and their time. Correct producers pay nothing for it.

    A message without a time of its own has that of its record, and its id follows from it.
    """

    def __init__(self, outbox: Outbox, metrics: Metrics, partitions: int) -> None:
        self._outbox, self._metrics, self.partitions = outbox, metrics, partitions

    def is_misrouted(self, record: Any, user_id: str) -> bool:
        """Whether the record does not lie where the user's do, and has not been sent there."""
        if (record.key, record.partition) == route_of(user_id, self.partitions):
            return False  # before a generator is made: this is asked of every record
        return not any(name == REROUTED_HEADER for name, _ in record.headers)

    def reroute(self, record: Any, user_id: str) -> bool:
        """Produce a misrouted record again, with the right key; whether it was one, and so not to be used here."""
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
