"""The dashboard's report about one worker (rates, counts, lag and warnings), and sums of several reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

from prometheus_client import Gauge
from pydantic import BaseModel

from schemas.memories import State
from streams.doors.http.partial import ShownBehind
from streams.service import MemoryService
from streams.telemetry.activity.readings import Reading
from streams.telemetry.metrics import labelled, value_of

#: The period over which the current rates are averaged, in seconds.
RATE_SECONDS: Final = 10
#: The time between two points of a chart, in seconds.
POINT_SECONDS: Final = 5
RATES: Final = ("messages", "exchanges", "promoted", "memories")


class WorkerReport(BaseModel):
    """The current report of one worker. `lag` has the number of uncommitted records, by topic and partition."""

    url: str
    partitions: list[int]
    ready: bool
    reasons: list[str]
    warnings: list[str]
    behind: list[ShownBehind]
    rates: dict[str, float]
    totals: dict[str, int]
    decisions: dict[str, int]
    lag: dict[str, dict[int, int]]
    states: dict[str, int]
    uncommitted_seconds: float
    sessions: int


class Point(BaseModel):
    """The rates per second, and the lag of each partition, at the time `at`.

    `at` is in epoch seconds, and a multiple of `POINT_SECONDS`.
    """

    at: int
    rates: dict[str, float]
    lag: dict[int, int]


class Series(BaseModel):
    """The points of one worker's charts for the last 15 minutes, oldest first.

    The lag in each point is the lag of the topic `conversations`.
    """

    points: list[Point]


def report_of(service: MemoryService) -> WorkerReport:
    """Return the report of this worker. It is made from counters in memory, so no shard is queried."""
    metrics, health = service.metrics, service.health
    readings = list(service.live.readings)
    lag: dict[str, dict[int, int]] = {}
    for (topic, partition), records in (readings[-1].lag if readings else {}).items():
        lag.setdefault(topic, {})[partition] = records
    reasons = health.not_ready()
    return WorkerReport(
        url=health.url,
        partitions=service.shards.partitions(),
        ready=not reasons,
        reasons=reasons,
        warnings=health.warnings(),
        behind=ShownBehind.each(health.behind()),
        rates=_rates_now(readings),
        totals={
            "messages": sum(labelled(metrics.messages).values()),
            "exchanges": sum(labelled(metrics.exchanges).values()),
            "promoted": metrics.promoted(),
            "memories": labelled(metrics.memories).get(("new",), 0),
            "dead_letters": sum(labelled(metrics.dead_letters).values()),
        },
        decisions={
            f"{outcome} · {reason}": n for (outcome, reason), n in sorted(labelled(metrics.decisions).items())
        },
        lag=lag,
        states=_states(metrics.states),
        uncommitted_seconds=value_of(metrics.uncommitted_seconds),
        sessions=int(value_of(metrics.sessions)),
    )


def series_of(service: MemoryService) -> Series:
    """Return this worker's points of the last 15 minutes: one for every `POINT_SECONDS` seconds."""
    topic = service.topics.conversations
    newest: dict[int, Reading] = {}
    readings = list(service.live.readings)
    for reading in readings:
        newest[reading.at // 1000 // POINT_SECONDS * POINT_SECONDS] = reading
    points = [
        Point(
            at=at,
            rates=_rates(before, after),
            lag={partition: records for (one, partition), records in after.lag.items() if one == topic},
        )
        for (_, before), (at, after) in pairwise([(0, reading) for reading in readings[:1]] + list(newest.items()))
        if after.at > before.at
    ]
    return Series(points=points)


def together(each: Sequence[Series]) -> list[Point]:
    """Merge the points of all workers. The rates at the same time are added.

    The lags are not added, because each partition belongs to one worker.
    """
    moments: dict[int, Point] = {}
    for series in each:
        for point in series.points:
            found = moments.get(point.at)
            if found is None:
                moments[point.at] = point.model_copy(deep=True)
                continue
            for name, rate in point.rates.items():
                found.rates[name] += rate
            found.lag |= point.lag
    return [moments[at] for at in sorted(moments)]


def summed(counts: Iterable[dict[str, float]] | Iterable[dict[str, int]]) -> dict[str, float]:
    """Return the sum of the counts for each name."""
    total: Counter[str] = Counter()
    for one in counts:
        total.update(one)
    return dict(total)


def _rates(before: Reading, after: Reading) -> dict[str, float]:
    seconds = max(0.001, (after.at - before.at) / 1000)
    return {name: round((getattr(after, name) - getattr(before, name)) / seconds, 2) for name in RATES}


def _rates_now(readings: Sequence[Reading]) -> dict[str, float]:
    if len(readings) < 2:
        return dict.fromkeys(RATES, 0.0)
    return _rates(readings[max(0, len(readings) - 1 - RATE_SECONDS)], readings[-1])


def _states(gauge: Gauge) -> dict[str, int]:
    """Return the number of memories in each state at the last lifecycle recompute.

    It is empty before the first recompute.
    """
    found = {sample.labels["state"]: int(sample.value) for family in gauge.collect() for sample in family.samples}
    return {state.value: found[state.value] for state in State if state.value in found}
