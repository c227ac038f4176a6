"""For how long a shard keeps what no memory needs: how memories came to be what they are, and what models answered.

Statements over its catalog. What forgetting needs stays: which near-copies a memory stands for, which summaries hold
its words, and what was forgotten, each once.
"""

from __future__ import annotations

from typing import Any, Final

import duckdb

from schemas.settings import RetentionSettings
from tables.database.migrations import transaction
from tables.database.shard_info import AgedTable, InfoTable, whole_from
from tables.memories.catalog.watermarks import DAY_MS

#: That a memory is in a summary is known for as long as the summary is there, or one that was made of it.
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
#: A link is shown with both its ends, and what is neither a memory nor archived is gone for good.
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
        """When a memory was accessed, and when a model was asked, for the last time (epoch ms); 0 where none was."""
        (row,) = self._db.execute(
            "SELECT coalesce((SELECT max(epoch_ms(last_accessed)) FROM memories), 0), "
            "coalesce((SELECT max(epoch_ms(rated_at)) FROM ratings), 0)"
        ).fetchall()
        return int(row[0]), int(row[1])

    def drop(self, now: int, wall: int, settings: RetentionSettings) -> dict[str, int]:
        """What is too old as of `now` (epoch ms, the lifecycle's), or `wall` (the wall clock's); rows by table.

        A table is a transaction: a crash in between leaves the rest for the next time.
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
        """With a note from which moment on the table is whole: shards are compared from there on."""
        with transaction(self._db):
            dropped = sum(self._dropped(sql, before=before) for sql in _DROPS[table])
            if dropped:
                self._info.write(whole_from(table, max(before, self._info.read().whole_from(table))))
        return dropped

    def _dropped(self, sql: str, **given: Any) -> int:
        ((rows,),) = self._db.execute(sql, given or None).fetchall()
        return int(rows)
