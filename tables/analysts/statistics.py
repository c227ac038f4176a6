"""Statistics over several shards: the distribution of scores, and changes of state over time.

Each shard counts its own rows (`sql/score_points.sql`, `sql/daily_transitions.sql`, `sql/states_over_time.sql`); this
module adds the counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, NamedTuple

import duckdb

from tables.database.database import connect
from tables.database.migrations import statement

DAY_MS = 86_400_000


class StateChange(NamedTuple):
    """A change of state on a UTC day."""

    day: date
    from_state: str
    to_state: str


class StateOnDay(NamedTuple):
    """A state at the end of a UTC day."""

    day: date
    state: str


@dataclass(frozen=True, slots=True)
class ScoreDistribution:
    """The rows of the views in `sql/score_statistics.sql`; `fences` is None if there are no memories."""

    histogram: list[dict[str, Any]]
    clusters: list[dict[str, Any]]
    fences: dict[str, Any] | None
    outliers: list[dict[str, Any]]


def distribution(points: Mapping[int, int]) -> ScoreDistribution:
    """Return histogram, clusters and outliers of the scores of memories.

    `points` has the number of memories for each score in whole points. The computation takes milliseconds.
    """
    with connect() as db:
        db.execute("CREATE TABLE score_points (point INTEGER, memories BIGINT)")
        if points:
            db.executemany("INSERT INTO score_points VALUES (?, ?)", [list(pair) for pair in sorted(points.items())])
        db.execute(statement("score_statistics"))
        (fences,) = _rows(db, "score_fences")
        return ScoreDistribution(
            histogram=_rows(db, "score_histogram"),
            clusters=_rows(db, "score_clusters"),
            fences=None if fences["low"] is None else {side: float(fences[side]) for side in ("low", "high")},
            outliers=_rows(db, "score_outliers"),
        )


def _rows(db: duckdb.DuckDBPyConnection, view: str) -> list[dict[str, Any]]:
    found = db.execute(f"FROM {view}")
    names = [column[0] for column in found.description or ()]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def first_moment(now: int, days: int) -> int:
    """Return the first midnight (UTC, epoch ms) of a period of `days` calendar days that ends at `now`."""
    return max(0, now - now % DAY_MS - (days - 1) * DAY_MS)


@dataclass(frozen=True, slots=True)
class Rate:
    """The rate of changes from one state to another. `daily_percent` is a percentage of all present memories."""

    from_state: str
    to_state: str
    transitions: int
    per_day: float
    daily_percent: float


def rates(changes: Mapping[StateChange, int], days: int, memories: int) -> list[Rate]:
    """Return the rate of each pair of states over `days` days, the most frequent pair first."""
    pairs: Counter[tuple[str, str]] = Counter()
    for change, number in changes.items():
        pairs[change.from_state, change.to_state] += number
    return [
        Rate(*pair, number, round(number / days, 2), round(100 * number / days / memories, 2) if memories else 0.0)
        for pair, number in sorted(pairs.items(), key=lambda item: (-item[1], item[0]))
    ]


def added(counts: Iterable[Mapping[Any, int]]) -> Counter[Any]:
    """Return the sum of the shards' counts."""
    total: Counter[Any] = Counter()
    for count in counts:
        total.update(count)
    return total


def day_of(now: int) -> date:
    return datetime.fromtimestamp(now / 1000, UTC).date()
