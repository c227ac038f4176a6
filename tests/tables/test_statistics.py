"""Scores and changes of state in numbers."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from schemas.settings import LifecycleSettings
from streams.rules.lifecycle import DAY_MS
from tables.statistics import Change, added, day_of, distribution, first_moment, rates
from tests.making import START
from tests.tables.test_catalog import HALVED, adding, memory, opened


def test_ten_bins_of_ten_points() -> None:
    """0 to 9 is the first; 90 to 100, the borders included, the last. Percentages are of all."""
    found = distribution({0: 1, 9: 1, 10: 1, 99: 2, 100: 3})
    assert [part["memories"] for part in found.histogram] == [2, 1, 0, 0, 0, 0, 0, 0, 0, 5]
    assert [(part["from_score"], part["to_score"]) for part in found.histogram][::9] == [(0, 10), (90, 100)]
    assert [part["percent"] for part in found.histogram][::9] == [25.0, 62.5]


def test_no_memories_have_no_clusters_and_no_outliers() -> None:
    found = distribution({})
    assert [part["memories"] for part in found.histogram] == [0] * 10
    assert (found.clusters, found.fences, found.outliers) == ([], None, [])


def test_a_cluster_is_a_run_of_bins_above_a_tenth() -> None:
    """A bin of exactly a tenth ends it."""
    found = distribution({5: 10, 45: 20, 55: 30, 75: 40})
    assert [(part["from_score"], part["to_score"], part["memories"]) for part in found.clusters] == [
        (40, 60, 50),
        (70, 80, 40),
    ]


def test_an_even_distribution_has_no_cluster_and_no_outlier() -> None:
    found = distribution(dict.fromkeys(range(100), 1))
    assert (found.clusters, found.outliers) == ([], [])


@pytest.mark.parametrize(
    ("points", "fences", "outliers"),
    [
        ({80: 50, 90: 50}, {"low": 65.0, "high": 105.0}, []),
        ({64: 1, 65: 1, 80: 50, 90: 50}, {"low": 65.0, "high": 105.0}, [(64, "low")]),
        ({10: 50, 26: 1}, {"low": -5.0, "high": 25.0}, [(26, "high")]),
        ({20: 30, 40: 30, 100: 1}, {"low": -10.0, "high": 70.0}, [(100, "high")]),
    ],
)
def test_outliers_lie_beyond_the_fences(
    points: dict[int, int], fences: dict[str, float], outliers: list[tuple[int, str]]
) -> None:
    """1.5 interquartile ranges beyond the quartiles, a range counting as 10 at least; the fence itself is inside."""
    found = distribution(points)
    assert found.fences == fences
    assert [(outlier["point"], outlier["side"]) for outlier in found.outliers] == outliers


def test_a_shard_counts_by_whole_points_as_of_a_moment(tmp_path: Path) -> None:
    """After the fresh week and a half-life 100 is 50; a pinned one and an early moment keep their scores."""
    catalog = opened(tmp_path)
    catalog.write(adding(memory(1), memory(2, pinned=True, importance=69.9)), START)
    assert catalog.ageing.score_points(HALVED, LifecycleSettings()) == {50: 1, 69: 1}
    assert catalog.ageing.score_points(START, LifecycleSettings()) == {100: 1, 69: 1}
    catalog.close()


def test_a_shard_counts_changes_by_day_and_pair(tmp_path: Path) -> None:
    """Those of the period alone."""
    catalog = opened(tmp_path)
    catalog.write(adding(memory(1), memory(2)), START)
    catalog.ageing.recompute(HALVED, LifecycleSettings())
    catalog.ageing.recompute(HALVED + 60 * DAY_MS, LifecycleSettings())
    cold = Change(date(2026, 2, 7), "active", "cold")
    deprecated = Change(date(2026, 4, 8), "cold", "deprecated")
    assert catalog.ageing.daily_transitions(START, HALVED + 90 * DAY_MS) == {cold: 2, deprecated: 2}
    assert catalog.ageing.daily_transitions(START, HALVED) == {cold: 2}
    assert catalog.ageing.daily_transitions(HALVED + 1, HALVED + 90 * DAY_MS) == {deprecated: 2}
    catalog.close()


def test_a_period_begins_at_midnight_and_includes_today() -> None:
    noon = START + DAY_MS // 2
    assert (first_moment(noon, 1), first_moment(noon, 3)) == (START, START - 2 * DAY_MS)
    assert (first_moment(0, 30), day_of(noon)) == (0, date(2026, 1, 1))


def test_rates_are_a_day_and_of_the_memories_there_are() -> None:
    """Days and shards are added; the most frequent pair comes first."""
    monday, tuesday = date(2026, 1, 5), date(2026, 1, 6)
    first = {Change(monday, "active", "cold"): 3, Change(monday, "cold", "active"): 1}
    second = {Change(tuesday, "active", "cold"): 2}
    found = rates(added([first, second]), 10, 50)
    assert [(rate.from_state, rate.transitions, rate.per_day, rate.daily_percent) for rate in found] == [
        ("active", 5, 0.5, 1.0),
        ("cold", 1, 0.1, 0.2),
    ]
    assert rates({}, 10, 0) == []
    assert rates(first, 1, 0)[0].daily_percent == 0
