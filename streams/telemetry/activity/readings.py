"""A worker's counters of the last minutes, one reading a second: the data for charts of rates and lags."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from schemas.times import now_ms
from streams.telemetry.metrics import Metrics, labelled, value_of

#: The number of readings that are kept. At one reading a second, they cover a quarter of an hour.
MOST_READINGS: Final = 900


class Reading(NamedTuple):
    """The counters at one moment, `at` (epoch ms).

    The integers are totals since the start of the worker. `uncommitted_seconds` is the time for which commits have
    failed, 0 while they succeed. `lag` is the number of uncommitted records, by topic and partition.
    """

    at: int
    messages: int
    exchanges: int
    promoted: int
    memories: int
    dead_letters: int
    uncommitted_seconds: float
    lag: Mapping[tuple[str, int], int]


class Readings:
    """The newest readings, oldest first. A reading costs about 50 µs, and is taken even if no dashboard is open."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._taken: deque[Reading] = deque(maxlen=MOST_READINGS)

    def __iter__(self) -> Iterator[Reading]:
        return iter(list(self._taken))

    def take(self, lag: Mapping[tuple[str, int], int], now: int | None = None) -> Reading:
        """Read the counters now. Store the reading, and return it."""
        metrics = self._metrics
        reading = Reading(
            at=now_ms() if now is None else now,
            messages=sum(labelled(metrics.messages).values()),
            exchanges=sum(labelled(metrics.exchanges).values()),
            promoted=metrics.promoted(),
            memories=labelled(metrics.memories).get(("new",), 0),
            dead_letters=sum(labelled(metrics.dead_letters).values()),
            uncommitted_seconds=value_of(metrics.uncommitted_seconds),
            lag=dict(lag),
        )
        self._taken.append(reading)
        return reading
