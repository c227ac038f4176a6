"""Retention: deletes old rows of a shard's catalog that no memory needs: history, transitions and models' ratings.

Rows that forgetting needs stay: the near-copies of a memory, the ids of the summaries that contain its words, and one
tombstone for each forgotten memory or user.
"""

from __future__ import annotations

from typing import Any, Final

from schemas.settings import RetentionSettings
from tables.database.migrations import transaction
from tables.database.shard_info import AgedTable, InfoTable, whole_from
from tables.memories.catalog.catalog_file import CatalogFile
from tables.memories.catalog.part import Part
from tables.memories.catalog.watermarks import DAY_MS

#: Deletes the entries of the history which say that a memory was summarized. An entry stays if that summary, or a
#: summary of that summary, still exists.
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
#: The statements that delete old rows, by table. `$before` is epoch ms.
_DROPS: Final[dict[AgedTable, tuple[str, ...]]] = {
    "transitions": ("DELETE FROM transitions WHERE published AND occurred_at < make_timestamp_ms($before)",),
    "history": (
        "DELETE FROM history WHERE event <> 'summarized' AND occurred_at < make_timestamp_ms($before)",
        _SUMMARIZED,
    ),
    "ratings": ("DELETE FROM ratings WHERE rated_at < make_timestamp_ms($before)",),
}
#: Deletes links with an end that is neither a memory nor archived. Such an end never comes back, and a link is shown
#: only with both ends.
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


class Retention(Part):
    """Drops the rows of a catalog that are no longer needed."""

    def __init__(self, file: CatalogFile, info: InfoTable) -> None:
        super().__init__(file)
        self._info = info

    def drop_old(self, now: int, wall: int, settings: RetentionSettings) -> dict[str, int]:
        """Do the same as `drop`, but limit `now` to the newest access to a memory, and `wall` to the newest rating.

        Otherwise the whole history would be deleted if a clock jumps ahead.
        """
        accessed = self._one("SELECT coalesce(max(epoch_ms(last_accessed)), 0) FROM memories")
        rated = self._one("SELECT coalesce(max(epoch_ms(rated_at)), 0) FROM ratings")
        return self.drop(min(now, accessed), min(wall, rated), settings)

    def drop(self, now: int, wall: int, settings: RetentionSettings) -> dict[str, int]:
        """Delete rows that are too old. Return the number of deleted rows by table.

        The age of ratings is computed from `wall`, the time of the wall clock, and the age of all other rows from
        `now`, the time of the lifecycle's clock (epoch ms). Each table has its own transaction. After a crash, the
        next call deletes the rest.
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
        """Delete rows older than `before` (epoch ms), and record this time if any row was deleted.

        A comparison of two shards ignores rows from before the recorded time.
        """
        with transaction(self._db):
            dropped = sum(self._dropped(sql, before=before) for sql in _DROPS[table])
            if dropped:
                self._info.write(whole_from(table, max(before, self._info.read().whole_from(table))))
        return dropped

    def _dropped(self, sql: str, **given: Any) -> int:
        ((rows,),) = self._db.execute(sql, given or None).fetchall()
        return int(rows)
