"""Measures the difference between a producer's clock and the log's clock.

Only producers that name themselves in a header of their records are measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from prometheus_client import Gauge

from schemas.topics import PRODUCER_HEADER

#: Maximum number of producers that are measured. Without a limit, a producer that sends a new name with each record
#: would create more and more metrics.
MOST_PRODUCERS: Final = 100
_NAME_CHARS: Final = 64


class ClockSkew:
    """Sets a gauge for each named producer, in seconds.

    The value is the timestamp of the producer's last message minus the timestamp of that message's Kafka record.
    """

    def __init__(self, gauge: Gauge) -> None:
        self._gauge = gauge
        self._known = set[str]()

    def note(self, headers: Sequence[tuple[str, bytes]], said_at: int, appended: int) -> None:
        """Update the gauge of the record's producer.

        `said_at` is the timestamp of the message, `appended` the timestamp of its Kafka record; both are epoch ms.
        """
        for name, value in headers:
            if name == PRODUCER_HEADER:
                self._seen(value.decode("utf-8", "replace")[:_NAME_CHARS], (said_at - appended) / 1000)

    def _seen(self, producer: str, seconds: float) -> None:
        if producer not in self._known:
            if len(self._known) >= MOST_PRODUCERS:
                return
            self._known.add(producer)
        self._gauge.labels(producer).set(seconds)
