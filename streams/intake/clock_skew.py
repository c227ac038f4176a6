"""Skew between producers' clocks and the log's, for records whose headers name their producer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from prometheus_client import Gauge

from schemas.topics import PRODUCER_HEADER

#: Limit of distinct producers: headers that name a new one each time would fill the metrics.
MOST_PRODUCERS: Final = 100
_NAME_CHARS: Final = 64


class ClockSkew:
    """Sets a gauge for each named producer: the time of its newest message minus its record's time (seconds)."""

    def __init__(self, gauge: Gauge) -> None:
        self._gauge = gauge
        self._known = set[str]()

    def note(self, headers: Sequence[tuple[str, bytes]], said_at: int, appended: int) -> None:
        """Note one record; times are epoch ms."""
        for name, value in headers:
            if name == PRODUCER_HEADER:
                self._seen(value.decode("utf-8", "replace")[:_NAME_CHARS], (said_at - appended) / 1000)

    def _seen(self, producer: str, seconds: float) -> None:
        if producer not in self._known:
            if len(self._known) >= MOST_PRODUCERS:
                return
            self._known.add(producer)
        self._gauge.labels(producer).set(seconds)
