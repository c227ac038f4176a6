"""Counters of the last minutes, and the rates that are drawn from them."""

from __future__ import annotations

from streams.doors.ui.reports import Point, Series, together
from streams.telemetry.activity.readings import MOST_READINGS, Readings
from streams.telemetry.metrics import Metrics
from tests.support.making import START


def test_a_reading_holds_totals_and_what_waits_by_partition_and_old_ones_go() -> None:
    metrics = Metrics()
    readings = Readings(metrics)
    metrics.messages.inc(3)
    metrics.decisions.labels("promoted", "forced").inc()
    metrics.memories.labels("new").inc(2)
    metrics.uncommitted_seconds.set(4)
    taken = readings.take({("conversations", 1): 5}, START)
    assert (taken.messages, taken.promoted, taken.memories, taken.uncommitted_seconds) == (3, 1, 2, 4)
    assert taken.lag == {("conversations", 1): 5}
    for second in range(MOST_READINGS + 10):
        readings.take({}, START + second)
    kept = list(readings)
    assert (len(kept), kept[-1].at) == (MOST_READINGS, START + MOST_READINGS + 9)


def test_several_workers_rates_add_up_and_their_partitions_stand_beside_each_other() -> None:
    one = Series(
        points=[Point(at=5, rates={"messages": 2}, lag={0: 1}), Point(at=10, rates={"messages": 3}, lag={0: 0})]
    )
    other = Series(points=[Point(at=10, rates={"messages": 4}, lag={1: 7})])
    both = together([one, other])
    assert [(point.at, point.rates["messages"], point.lag) for point in both] == [
        (5, 2, {0: 1}),
        (10, 7, {0: 0, 1: 7}),
    ]
    assert one.points[1].rates["messages"] == 3
