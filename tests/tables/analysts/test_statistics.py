"""Scores and changes of state in numbers."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest

from schemas.lifecycle import DAY_MS
from schemas.settings import LifecycleSettings
from tables.analysts.statistics import StateChange, StateOnDay, added, day_of, distribution, first_moment, rates
from tables.memories.catalog.archive import ToArchive
from tables.memories.catalog.catalog import Catalog
from tables.memories.catalog.changes import Changes, Move
from tests.support.making import START
from tests.tables.memories.catalog.test_catalog import HALVED, adding, dropping, memory, opened


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
    """After the fresh week and a half-life 70 is 35; a pinned one and an early moment keep their scores."""
    catalog = opened(tmp_path)
    catalog.write(adding(memory(1), memory(2, pinned=True, importance=69.9)), START)
    assert catalog.ageing.score_points(HALVED, LifecycleSettings()) == {35: 1, 69: 1}
    assert catalog.ageing.score_points(START, LifecycleSettings()) == {70: 1, 69: 1}
    catalog.close()


def test_a_shard_counts_changes_by_day_and_pair(tmp_path: Path) -> None:
    """Those of the period alone."""
    catalog = opened(tmp_path)
    catalog.write(adding(memory(1), memory(2)), START)
    catalog.ageing.recompute(HALVED, LifecycleSettings())
    catalog.ageing.recompute(HALVED + 60 * DAY_MS, LifecycleSettings())
    cold = StateChange(date(2026, 2, 7), "active", "cold")
    deprecated = StateChange(date(2026, 4, 8), "cold", "deprecated")
    assert catalog.ageing.daily_transitions(START, HALVED + 90 * DAY_MS) == {cold: 2, deprecated: 2}
    assert catalog.ageing.daily_transitions(START, HALVED) == {cold: 2}
    assert catalog.ageing.daily_transitions(HALVED + 1, HALVED + 90 * DAY_MS) == {deprecated: 2}
    catalog.close()


DAY = date(2026, 1, 1)


def over_time(catalog: Catalog, days: int) -> list[tuple[int, int, int]]:
    """Active, cold and deprecated at the end of each of so many days from START on."""
    found = catalog.ageing.states_over_time(START, START + days * DAY_MS - 1)
    return [
        (found[StateOnDay(day, "active")], found[StateOnDay(day, "cold")], found[StateOnDay(day, "deprecated")])
        for day in (DAY + timedelta(days=n) for n in range(days))
    ]


@pytest.mark.slow
def test_states_over_time_are_those_that_were_counted_each_day(tmp_path: Path) -> None:
    """Sixty days of births, accesses and recomputes: looking back gives what stood there on each evening."""
    catalog, chance, counted = opened(tmp_path), random.Random(8), []
    lifecycle = LifecycleSettings(fresh_days=2, half_life_days=5)
    for day in range(60):
        morning, evening = START + day * DAY_MS + 1000, START + (day + 1) * DAY_MS - 1
        catalog.write(
            adding(
                *(memory(10 * day + n, created_at=morning, last_accessed=morning) for n in range(chance.randrange(4)))
            ),
            morning,
        )
        known = catalog.of_user("u")
        used = chance.sample(known, min(len(known), chance.randrange(3)))
        catalog.write(Changes(updated={one.seq: replace(one, last_accessed=morning) for one in used}), morning)
        for moment in (morning, evening):
            catalog.ageing.recompute(moment, lifecycle)
        states = [one.state.value for one in catalog.of_user("u")]
        counted.append((states.count("active"), states.count("cold"), states.count("deprecated")))
    assert over_time(catalog, 60) == counted
    assert min(max(column) for column in zip(*counted, strict=True)) > 3
    later = catalog.ageing.states_over_time(START + 40 * DAY_MS, START + 60 * DAY_MS - 1)
    assert [later[StateOnDay(DAY + timedelta(days=40 + n), "cold")] for n in range(20)] == [
        n[1] for n in counted[40:]
    ]
    catalog.close()


def test_the_last_day_ends_at_the_moment_that_is_asked_about(tmp_path: Path) -> None:
    """What changes or is made later on that day is not in it; what stays as it is counts on every day after."""
    catalog = opened(tmp_path)
    noon = START + DAY_MS // 2
    catalog.write(adding(memory(1), memory(2, importance=10.0), memory(3, created_at=noon + 1)), START)
    catalog.ageing.recompute(noon, LifecycleSettings())
    before, after = (catalog.ageing.states_over_time(START, moment) for moment in (noon - 1, noon + 1))
    assert list(before.values()) == [2, 0, 0]
    assert list(after.values()) == [2, 0, 1]
    assert over_time(catalog, 3) == [(2, 0, 1)] * 3
    catalog.close()


def test_a_clock_that_goes_back_makes_no_number_negative(tmp_path: Path) -> None:
    """The event clock does when a log is replayed. Of two changes at one moment the second one holds."""
    catalog = opened(tmp_path)
    made = memory(1, created_at=START + DAY_MS)
    catalog.write(adding(made), START)
    for days in (37, 0, 37):
        catalog.ageing.recompute(START + days * DAY_MS, LifecycleSettings())
    assert over_time(catalog, 39) == [(0, 0, 0), *[(1, 0, 0)] * 36, *[(0, 1, 0)] * 2]
    catalog.write(Changes(updated={made.seq: replace(made, last_accessed=HALVED)}), HALVED)
    catalog.ageing.recompute(HALVED, LifecycleSettings())
    assert over_time(catalog, 39) == [(0, 0, 0), *[(1, 0, 0)] * 38]
    catalog.close()


def test_what_is_gone_counts_between_the_changes_that_are_known_of_it(tmp_path: Path) -> None:
    """When it was made and when it went is not known any more."""
    catalog = opened(tmp_path)
    catalog.write(adding(memory(1), memory(2, pinned=True)), START)
    for days in (37, 90):
        catalog.ageing.recompute(START + days * DAY_MS, LifecycleSettings())
    assert over_time(catalog, 91)[::30] == [(2, 0, 0), (2, 0, 0), (1, 1, 0), (1, 0, 1)]
    catalog.write(dropping(memory(1)), START + 91 * DAY_MS)
    assert over_time(catalog, 91)[::30] == [(1, 0, 0), (1, 0, 0), (1, 1, 0), (1, 0, 0)]
    catalog.close()


def test_what_is_archived_counts_until_then(tmp_path: Path) -> None:
    """And again from the day that brings it back."""
    catalog, away = opened(tmp_path), memory(1)
    catalog.write(adding(away, memory(2)), START)
    gone, back = START + DAY_MS, START + 3 * DAY_MS
    leaving = Move(away.id, "u", "active", "archived", 100.0, gone, "manual")
    catalog.write(Changes(archived=[ToArchive(away.seq, gone, "manual")], moves=[leaving]), gone)
    assert over_time(catalog, 5) == [(2, 0, 0), *[(1, 0, 0)] * 4]
    returning = adding(replace(away, seq=3))
    returning.unarchived.append(away.seq)
    returning.moves.append(Move(away.id, "u", "archived", "active", 100.0, back, "manual"))
    catalog.write(returning, back)
    assert over_time(catalog, 5) == [(2, 0, 0), *[(1, 0, 0)] * 2, *[(2, 0, 0)] * 2]
    catalog.close()


def test_an_empty_shard_has_no_memory_on_any_day(tmp_path: Path) -> None:
    catalog = opened(tmp_path)
    assert over_time(catalog, 2) == [(0, 0, 0)] * 2
    catalog.close()


def test_a_period_begins_at_midnight_and_includes_today() -> None:
    noon = START + DAY_MS // 2
    assert (first_moment(noon, 1), first_moment(noon, 3)) == (START, START - 2 * DAY_MS)
    assert (first_moment(0, 30), day_of(noon)) == (0, date(2026, 1, 1))


def test_rates_are_a_day_and_of_the_memories_there_are() -> None:
    """Days and shards are added; the most frequent pair comes first."""
    monday, tuesday = date(2026, 1, 5), date(2026, 1, 6)
    first = {StateChange(monday, "active", "cold"): 3, StateChange(monday, "cold", "active"): 1}
    second = {StateChange(tuesday, "active", "cold"): 2}
    found = rates(added([first, second]), 10, 50)
    assert [(rate.from_state, rate.transitions, rate.per_day, rate.daily_percent) for rate in found] == [
        ("active", 5, 0.5, 1.0),
        ("cold", 1, 0.1, 0.2),
    ]
    assert rates({}, 10, 0) == []
    assert rates(first, 1, 0)[0].daily_percent == 0
