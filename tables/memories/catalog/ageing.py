"""Ageing: SQL statements over a shard's catalog that store, change and count the states of its memories."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

import duckdb
import numpy as np
import pyarrow as pa

from schemas.memories import State, Transition
from schemas.settings import LifecycleSettings
from schemas.times import iso
from tables.analysts.statistics import StateChange, StateOnDay
from tables.database.migrations import statement, transaction
from tables.database.shard_info import InfoTable, ShardInfo
from tables.memories.catalog.catalog_file import CatalogFile
from tables.memories.catalog.next_checks import NEVER, NextChecks
from tables.memories.catalog.part import Part, resting
from tables.vectors.index import Seqs

#: A recompute of more memories than this drops its temporary table at its end. A smaller table stays until the next
#: recompute.
_MANY: Final = 10_000

#: Takes users, and the numbers of their memories that change.
Before = Callable[[list[str], Seqs], None]


class Ageing(Part):
    """Scores and states of the memories in a catalog, by the formulas of `sql/lifecycle.sql`."""

    def __init__(self, file: CatalogFile, info: InfoTable) -> None:
        self._info = info
        self._next_checks, self._formula = NextChecks(), {"now": 0.0}
        super().__init__(file)

    def connect(self, db: duckdb.DuckDBPyConnection) -> None:
        super().connect(db)
        db.execute(statement("lifecycle"))
        db.execute(statement("states_over_time"))

    def recompute(
        self, now: int, lifecycle: LifecycleSettings, before: Before = lambda users, seqs: None
    ) -> list[str]:
        """Store the states as of `now` (epoch ms) and record each change. Return the users whose memories changed.

        `before` is called before the commit, with these users and the numbers of the memories whose state changes.

        Only some memories are examined: new ones, those touched since the last call, and those that may be old enough
        for another state by now. All memories are examined in the first call, after a change of settings, and if
        `now` is earlier than in the last call.
        """
        formula = _formula(now, lifecycle)
        warmed_by = None
        if formula | {"now": 0} != self._formula | {"now": 0}:
            self._next_checks = NextChecks()
            warmed_by = self._settings_changed(formula)
        elif now < self._formula["now"]:
            self._next_checks = NextChecks()
            warmed_by = "clock"
        self._formula = formula
        self._next_checks.add(self._numbers_above(self._next_checks.newest))
        seqs = self._next_checks.at(now)
        if not len(seqs):
            return []
        self._db.register("due", pa.table({"seq": seqs}))
        self._db.execute(statement("recompute"), formula | {"warmed_by": warmed_by})
        changed = "FROM looked_at WHERE from_state <> to_state"
        users = [row[0] for row in self._db.execute(f"SELECT DISTINCT user_id {changed}").fetchall()]
        if users:
            before(users, self._db.execute(f"SELECT seq {changed}").fetchnumpy()["seq"])
            with transaction(self._db):
                self._db.execute(statement("apply_transitions"), {"at": iso(now)})
                self._db.execute(
                    "INSERT INTO transitions SELECT id, user_id, from_state, to_state, score, "
                    f"make_timestamp_ms(?), reason, false {changed}",
                    [now],
                )
                self._info.write(ShardInfo(changes=(self._info.read().changes or 0) + 1))
        looked_at = self._db.execute("SELECT seq, due_at FROM looked_at").fetchnumpy()
        self._next_checks.set(seqs, NEVER)  # `NEVER` stays for memories that no longer exist
        self._next_checks.set(looked_at["seq"], looked_at["due_at"])
        self._db.unregister("due")
        if len(seqs) > _MANY:
            self._db.execute("DROP TABLE looked_at")
        return users

    def _settings_changed(self, formula: dict[str, float]) -> str | None:
        """Store the lifecycle settings. Return "settings" if the stored states come from other or unknown settings.

        Return None if they come from the same settings.
        """
        by = " ".join(f"{value:g}" for name, value in formula.items() if name != "now")
        if self._info.read().lifecycle == by:
            return None
        self._info.write(ShardInfo(lifecycle=by))
        return "settings"

    def touched(self, seqs: Iterable[int]) -> None:
        """Make the next recompute examine these memories, because values of their score formula may have changed."""
        self._next_checks.set(np.fromiter(seqs, np.int64), 0)

    def _numbers_above(self, seq: int) -> Seqs:
        found = self._db.execute("SELECT seq FROM memories WHERE seq > ? ORDER BY seq", [seq]).fetchnumpy()["seq"]
        return np.asarray(found, np.int64)

    def unpublished(self, limit: int = 1000) -> list[Transition]:
        """Return at most `limit` transitions that are not published to the topic `transitions` yet, oldest first."""
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
        """Mark the oldest `count` unpublished transitions as published."""
        self._db.execute(
            "UPDATE transitions SET published = true WHERE rowid IN "
            "(SELECT rowid FROM transitions WHERE NOT published ORDER BY rowid LIMIT ?)",
            [count],
        )

    @resting
    def state_counts(self, now: int, lifecycle: LifecycleSettings) -> dict[State, int]:
        """Return the number of memories in each state as of `now` (epoch ms), without storing the states."""
        counts = dict(self._db.execute(statement("state_counts"), _formula(now, lifecycle)).fetchall())
        return {state: counts.get(state.value, 0) for state in State}

    @resting
    def score_points(self, now: int, lifecycle: LifecycleSettings) -> dict[int, int]:
        """Return the number of memories by their score as of `now` (epoch ms), rounded down to a whole number."""
        formula = _formula(now, lifecycle)
        del formula["active"], formula["cold"]
        return dict(self._db.execute(statement("score_points"), formula).fetchall())

    def daily_transitions(self, since: int, now: int) -> dict[StateChange, int]:
        """Return the number of changes of state, by UTC day and pair of states, from `since` to `now` (epoch ms)."""
        rows = self._db.execute(statement("daily_transitions"), {"since": since, "now": now}).fetchall()
        return {StateChange(*row[:3]): row[3] for row in rows}

    @resting
    def states_over_time(self, since: int, now: int) -> dict[StateOnDay, int]:
        """Return the number of memories in each state at the end of each UTC day, from `since` to `now` (epoch ms).

        If no memory is in a state at the end of a day, the number is 0.
        """
        rows = self._db.execute(
            "FROM states_between(make_timestamp_ms($since), make_timestamp_ms($now))", {"since": since, "now": now}
        ).fetchall()
        return {StateOnDay(day, state): memories for day, state, memories in rows}

    def newest_event(self) -> int:
        """Return the time (epoch ms) of the newest creation, access or change of state; 0 in an empty shard."""
        return int(self._one(statement("newest_event")))


def _formula(now: int, lifecycle: LifecycleSettings) -> dict[str, float]:
    return {
        "now": now,
        "active": lifecycle.active,
        "cold": lifecycle.cold,
        "fresh_days": lifecycle.fresh_days,
        "half_life_days": lifecycle.half_life_days,
    }
