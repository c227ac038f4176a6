"""Watermarks: offsets of the log below which all events are applied, so that their ids need not be kept.

No event is applied twice, because the ids of applied events are in the table `applied`. To keep this table from
growing with the log, a watermark is stored from time to time: an offset below which all events are applied, with the
digest of the record before it. The newest watermark that is old enough is the low watermark. Rows of `applied` below
it are dropped, and records below it that are read again are skipped by their offset. The digest shows whether the log
is still the same one. If an old data directory is used with a new log, offsets begin at 0 again, with other events.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from tables.database.migrations import transaction
from tables.memories.catalog.catalog_file import CatalogFile
from tables.memories.catalog.ids import Ids
from tables.memories.catalog.part import Part

DAY_MS: Final = 86_400_000


class Watermark(NamedTuple):
    """An offset of the log below which all events are applied. `digest` is of the record at `offset - 1`."""

    offset: int
    digest: str


class NextWatermark(NamedTuple):
    """The newest stored watermark, and the offset that a new watermark would have now (`position`)."""

    newest: Watermark | None
    position: int


class Watermarks(Part):
    """The table `watermarks` of a catalog, and its effect on `applied` and on the known ids.

    Times are epoch ms by the wall clock.
    """

    def __init__(self, file: CatalogFile, ids: Ids) -> None:
        super().__init__(file)
        self._ids = ids

    def low(self) -> Watermark | None:
        """Return the low watermark, below which rows of `applied` are dropped; None if there is none."""
        return self._mark("WHERE low")

    def newest(self) -> Watermark | None:
        return self._mark("ORDER BY log_offset DESC LIMIT 1")

    def due(self, now: int, position: int) -> NextWatermark | None:
        """If a new watermark must be stored at `now` (epoch ms), return its offset, and the newest stored watermark.

        That is so if the newest one is at least a day old, or there is none. `position` is the shard's. Otherwise, or
        if the shard has no event yet, return None.
        """
        ((young,),) = self._db.execute(
            "SELECT count(*) FROM watermarks WHERE epoch_ms(noted_at) > ?", [now - DAY_MS]
        ).fetchall()
        return None if young or not position else NextWatermark(self.newest(), position)

    def keep(self, mark: Watermark, now: int, keep_days: float) -> int:
        """Store a watermark of the present log. Then delete the rows of `applied` below the low watermark.

        The low watermark is the newest one that is at least `keep_days` old. Return the number of deleted rows.

        If the offset is the same as before, the oldest watermark of that offset stays beside the new one, because its
        age decides when rows are deleted.
        """
        with transaction(self._db):
            self._db.execute(
                "DELETE FROM watermarks WHERE log_offset = $offset AND noted_at > "
                "(SELECT min(noted_at) FROM watermarks WHERE log_offset = $offset)",
                {"offset": mark.offset},
            )
            self._db.execute(
                "INSERT INTO watermarks VALUES (?, ?, make_timestamp_ms(?), false)", [mark.offset, mark.digest, now]
            )
            ((low,),) = self._db.execute(
                "SELECT max(log_offset) FROM watermarks WHERE low OR epoch_ms(noted_at) <= ?",
                [now - round(keep_days * DAY_MS)],
            ).fetchall()
            if low is None:
                return 0
            self._db.execute("DELETE FROM watermarks WHERE log_offset < ?", [low])
            self._db.execute("UPDATE watermarks SET low = true WHERE log_offset = ? AND NOT low", [low])
            ((dropped,),) = self._db.execute("DELETE FROM applied WHERE log_end <= ?", [low]).fetchall()
        if dropped:
            self._ids.read()
        return int(dropped)

    def start_over(self) -> None:
        """Delete all watermarks, because the log was replaced by another one.

        The event ids of the former log are dropped when the new log has its first low watermark.
        """
        with transaction(self._db):
            self._db.execute("DELETE FROM watermarks")
            self._db.execute("UPDATE applied SET log_end = 0 WHERE log_end > 0")

    def _mark(self, which: str) -> Watermark | None:
        rows = self._db.execute(f"SELECT log_offset, digest FROM watermarks {which}").fetchall()
        return Watermark(*rows[0]) if rows else None
