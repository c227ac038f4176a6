"""Retention: drops old rows that no memory needs, such as its history, its transitions and models' ratings.

Statements over a shard's catalog. Rows that forgetting needs stay: the near-copies of a memory, the summaries that
hold its words, and what was forgotten, each once.
"""

from __future__ import annotations

from typing import Any, Final

import duckdb

from schemas.settings import RetentionSettings
from tables.database.migrations import transaction
from tables.database.shard_info import AgedTable, InfoTable, whole_from
from tables.memories.catalog.watermarks import DAY_MS

#: The summary of a memory stays known as long as that summary, or one that was made of it, exists.
_SUMMARIZED: Final = """
    DELETE FROM history
    WHERE event = 'summarized' AND occurred_at < make_timestamp_ms($before)
    AND cast(details ->> 'by' AS UUID) NOT IN (
        SELECT id FROM memories WHERE summary_of IS NOT NULL
        UNION ALL
        SELECT id FROM archive WHERE summary_of IS NOT NULL
        UNION ALL
        SELECT memory_id FROM history WHERE event = 'summarized'
    )
"""
#: By table. `$before` is epoch ms.
_DROPS: Final[dict[AgedTable, tuple[str, ...]]] = {
    "transitions": ("DELETE FROM transitions WHERE published AND occurred_at < make_timestamp_ms($before)",),
    "history": (
        "DELETE FROM history WHERE event <> 'summarized' AND occurred_at < make_timestamp_ms($before)",
        _SUMMARIZED,
    ),
    "ratings": ("DELETE FROM ratings WHERE rated_at < make_timestamp_ms($before)",),
}
#: Links are shown with both ends, and an end that is neither a memory nor archived is gone for good.
_LINKS: Final = """
    DELETE FROM links
    USING (
        FROM (SELECT user_id, source_id AS id FROM links UNION SELECT user_id, target_id FROM links)
        ANTI JOIN (SELECT user_id, id FROM memories UNION ALL SELECT user_id, id FROM archive) USING (user_id, id)
    ) AS gone
    WHERE links.user_id = gone.user_id AND (links.source_id = gone.id OR links.target_id = gone.id)
"""
_TOMBSTONES: Final = """
    DELETE FROM tombstones
    WHERE rowid NOT IN (
        SELECT arg_max(rowid, forgotten_at) FROM tombstones GROUP BY user_id, memory_id
        UNION ALL
        SELECT arg_max(rowid, (seen_at, forgotten_at)) FROM tombstones WHERE seen_at IS NOT NULL GROUP BY user_id
    )
"""


class Retention:
    """Drops the rows of a catalog that are no longer needed."""

    def __init__(self, db: duckdb.DuckDBPyConnection, info: InfoTable) -> None:
        self._info = info
        self.connect(db)

    def connect(self, db: duckdb.DuckDBPyConnection) -> None:
        """Work on this connection to the same catalog from now on."""
        self._db = db

    def newest(self) -> tuple[int, int]:
        """Return when a memory was last accessed and when a model last rated one (epoch ms); 0 if none was."""
        (row,) = self._db.execute(
            "SELECT coalesce((SELECT max(epoch_ms(last_accessed)) FROM memories), 0), "
            "coalesce((SELECT max(epoch_ms(rated_at)) FROM ratings), 0)"
        ).fetchall()
        return int(row[0]), int(row[1])

    def drop(self, now: int, wall: int, settings: RetentionSettings) -> dict[str, int]:
        """Drop rows that are too old as of `now` (epoch ms, lifecycle's clock) or `wall` (wall clock).

        Return the dropped rows by table. A table is a transaction: after a crash, the next call drops the rest.
        """
        dropped: dict[str, int] = {}
        kept: tuple[tuple[AgedTable, float | None, int], ...] = (
            ("transitions", settings.transitions_days, now),
            ("history", settings.history_days, now),
            ("ratings", settings.ratings_days, wall),
        )
        for table, days, moment in kept:
            if days is not None:
                dropped[table] = self._dropped_before(table, max(0, moment - round(days * DAY_MS)))
        dropped["links"] = self._dropped(_LINKS)
        dropped["tombstones"] = self._dropped(_TOMBSTONES)
        return {table: rows for table, rows in dropped.items() if rows}

    def _dropped_before(self, table: AgedTable, before: int) -> int:
        """Drop old rows, and record from when on the table is complete: comparisons of shards start there."""
        with transaction(self._db):
            dropped = sum(self._dropped(sql, before=before) for sql in _DROPS[table])
            if dropped:
                self._info.write(whole_from(table, max(before, self._info.read().whole_from(table))))
        return dropped

    def _dropped(self, sql: str, **given: Any) -> int:
        ((rows,),) = self._db.execute(sql, given or None).fetchall()
        return int(rows)
