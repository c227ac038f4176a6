"""How far the clocks of producers are from the log's, where their records say who they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from prometheus_client import Gauge

from schemas.topics import PRODUCER_HEADER

#: Producers that are told apart; a header that names another one each time would fill the metrics.
MOST_PRODUCERS: Final = 100
_NAME_CHARS: Final = 64


class ClockSkew:
    """Of each producer that a header names, the skew of its newest message: its time less that of its record."""

    def __init__(self, gauge: Gauge) -> None:
        self._gauge = gauge
        self._known = set[str]()

    def note(self, headers: Sequence[tuple[str, bytes]], said_at: int, appended: int) -> None:
        """Of one record; times are epoch ms."""
        for name, value in headers:
            if name == PRODUCER_HEADER:
                self._seen(value.decode("utf-8", "replace")[:_NAME_CHARS], (said_at - appended) / 1000)

    def _seen(self, producer: str, seconds: float) -> None:
        if producer not in self._known:
            if len(self._known) >= MOST_PRODUCERS:
                return
            self._known.add(producer)
        self._gauge.labels(producer).set(seconds)
