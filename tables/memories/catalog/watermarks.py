"""Up to where the log is in for good: what lies below needs no row in `applied`, whenever it is read again.

An event is applied once because its id is noted (`applied`). So that these rows do not grow with the log, an offset
is noted from time to time up to which all events are in, with the digest of the record before it: a watermark. One
that is old enough is the low one: its events' rows are dropped, and what is read again below it is passed over by its
offset. By the digest it is known that it is the same log: a new one behind the old data directory begins at 0, too,
and its events are others.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import duckdb

from tables.database.migrations import transaction

DAY_MS: Final = 86_400_000


class Watermark(NamedTuple):
    """All events below this offset are in. `digest` is of the record at `offset - 1`."""

    offset: int
    digest: str


class Watermarks:
    """The table `watermarks` of a catalog, and what it means for `applied`. Moments are epoch ms, wall clock."""

    def __init__(self, db: duckdb.DuckDBPyConnection) -> None:
        self.connect(db)

    def connect(self, db: duckdb.DuckDBPyConnection) -> None:
        """Work on this connection to the same catalog from now on."""
        self._db = db

    def low(self) -> Watermark | None:
        """The one below which nothing is noted in `applied`; None where there is none."""
        return self._one("WHERE low")

    def newest(self) -> Watermark | None:
        return self._one("ORDER BY log_offset DESC LIMIT 1")

    def is_due(self, now: int) -> bool:
        """Whether the newest one is a day old, or there is none."""
        ((young,),) = self._db.execute(
            "SELECT count(*) FROM watermarks WHERE epoch_ms(noted_at) > ?", [now - DAY_MS]
        ).fetchall()
        return not young

    def add(self, mark: Watermark, now: int, keep_days: float) -> int:
        """Note one of the same log as those before it, and drop what lies below the newest that is old enough.

        How many rows of `applied` were dropped. Where nothing came meanwhile, it stands beside the one that is as
        old as its offset.
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
        return int(dropped)

    def begin_anew(self) -> None:
        """The log is another one: what came of the former one is kept for as long as what comes of this one."""
        with transaction(self._db):
            self._db.execute("DELETE FROM watermarks")
            self._db.execute("UPDATE applied SET log_end = 0 WHERE log_end > 0")

    def _one(self, which: str) -> Watermark | None:
        rows = self._db.execute(f"SELECT log_offset, digest FROM watermarks {which}").fetchall()
        return Watermark(*rows[0]) if rows else None
