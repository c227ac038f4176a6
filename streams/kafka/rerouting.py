"""Produces misrouted records once more, with the right key. A misrouted record has a wrong key or partition."""

from __future__ import annotations

from typing import Any

from schemas.topics import REROUTED_HEADER, route_of
from streams.kafka.commit.outbox import Outbox
from streams.telemetry.metrics import Metrics

#: Maximum bytes of a record's headers. Larger headers are dropped: otherwise the record could be larger than a broker
#: accepts.
MAX_HEADERS_BYTES = 64 * 1024


class Rerouting:
    """Produces misrouted records again, with their headers and their timestamp.

    The timestamp must stay the same: a message without a time of its own takes the time of its record, and the
    message's id is computed from this time.
    """

    def __init__(self, outbox: Outbox, metrics: Metrics, partitions: int) -> None:
        self._outbox, self._metrics, self.partitions = outbox, metrics, partitions

    def is_misrouted(self, record: Any, user_id: str) -> bool:
        """True if the record does not have the user's key and partition, and was not rerouted before."""
        if (record.key, record.partition) == route_of(user_id, self.partitions):
            return False  # checked first: the check of the headers takes more time, and this runs for every record
        return not any(name == REROUTED_HEADER for name, _ in record.headers)

    def reroute(self, record: Any, user_id: str) -> bool:
        """If the record is misrouted, produce it again with the right key, and return True.

        In this case, the caller must not use the record.
        """
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
