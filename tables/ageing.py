"""The states of one shard's memories as they age: stored, changed, counted. Statements over its catalog."""

from __future__ import annotations

import duckdb

from schemas.memories import State, Transition
from schemas.messages import iso
from schemas.settings import LifecycleSettings
from tables.migrations import statement, transaction
from tables.statistics import Change


class Ageing:
    """Scores and states of the memories in a catalog, by the formulas of `sql/lifecycle.sql`."""

    def __init__(self, db: duckdb.DuckDBPyConnection) -> None:
        self._db = db
        db.execute(statement("lifecycle"))

    def recompute(self, now: int, lifecycle: LifecycleSettings) -> list[str]:
        """Store the states as of `now` (epoch ms) and note each change; the users whose memories changed."""
        self._db.execute(statement("recompute"), _formula(now, lifecycle))
        users = [row[0] for row in self._db.execute("SELECT DISTINCT user_id FROM changing").fetchall()]
        if users:
            with transaction(self._db):
                self._db.execute(statement("apply_transitions"), {"at": iso(now)})
                self._db.execute(
                    "INSERT INTO transitions SELECT id, user_id, from_state, to_state, score, "
                    "make_timestamp_ms(?), 'decay', false FROM changing",
                    [now],
                )
        return users

    def unpublished(self, limit: int = 1000) -> list[Transition]:
        """Transitions that are not on their topic yet, oldest first."""
        rows = self._db.execute(
            "SELECT memory_id, user_id, from_state, to_state, score, epoch_ms(occurred_at), reason "
            "FROM transitions WHERE NOT published ORDER BY rowid LIMIT ?",
            [limit],
        ).fetchall()
        return [
            Transition.model_validate(
                {
                    "memory_id": row[0],
                    "user_id": row[1],
                    "from": row[2],
                    "to": row[3],
                    "score": row[4],
                    "at": iso(row[5]),
                    "reason": row[6],
                }
            )
            for row in rows
        ]

    def mark_published(self, count: int) -> None:
        """The oldest `count` unpublished transitions are on their topic now."""
        self._db.execute(
            "UPDATE transitions SET published = true WHERE rowid IN "
            "(SELECT rowid FROM transitions WHERE NOT published ORDER BY rowid LIMIT ?)",
            [count],
        )

    def state_counts(self, now: int, lifecycle: LifecycleSettings) -> dict[State, int]:
        """How many memories are in each state as of `now` (epoch ms); nothing is written."""
        counts = dict(self._db.execute(statement("state_counts"), _formula(now, lifecycle)).fetchall())
        return {state: counts.get(state.value, 0) for state in State}

    def score_points(self, now: int, lifecycle: LifecycleSettings) -> dict[int, int]:
        """How many memories have each whole number of points as their score, as of `now` (epoch ms)."""
        formula = _formula(now, lifecycle)
        del formula["active"], formula["cold"]
        return dict(self._db.execute(statement("score_points"), formula).fetchall())

    def daily_transitions(self, since: int, now: int) -> dict[Change, int]:
        """Changes of state by UTC day and pair, between two moments (epoch ms)."""
        rows = self._db.execute(statement("daily_transitions"), {"since": since, "now": now}).fetchall()
        return {Change(*row[:3]): row[3] for row in rows}


def _formula(now: int, lifecycle: LifecycleSettings) -> dict[str, float]:
    return {
        "now": now,
        "active": lifecycle.active,
        "cold": lifecycle.cold,
        "fresh_days": lifecycle.fresh_days,
        "half_life_days": lifecycle.half_life_days,
    }
