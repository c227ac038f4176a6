"""Queries of a catalog. None of them changes a row."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from typing import Any, Final

import duckdb
import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa

from schemas.memories import Memory
from tables.database.migrations import statement
from tables.database.parsed import Parsed
from tables.memories.catalog.changes import Done, ExpiredItem, Holdings, NewLink, Tombstone, UserCount
from tables.memories.catalog.columns import uuids
from tables.memories.catalog.erasing import Named, named_table
from tables.memories.catalog.memory_rows import COLUMNS, memory_of
from tables.vectors.known_ids import KnownIds, hashes_of, hashes_of_bytes, hashes_of_names

#: The number of ids that are read from the tables at a time.
_IDS_AT_A_TIME: Final = 122_880


class CatalogQueries:
    """The queries of a catalog. `_ids` has hashes of all known ids, `_forgetting` of all users with tombstones."""

    _db: duckdb.DuckDBPyConnection
    _parsed: Parsed
    _ids: KnownIds
    _forgetting: KnownIds

    def _fill_known_ids(self) -> None:
        ids = self._db.sql(
            "SELECT event_id AS id FROM applied UNION ALL SELECT id FROM memories UNION ALL "
            "SELECT memory_id FROM merged UNION ALL SELECT id FROM archive"
        )
        found = []
        for batch in ids.to_arrow_reader(_IDS_AT_A_TIME):
            column = batch.column(0)
            raw = memoryview(column.storage.buffers()[1])
            found.append(hashes_of_bytes(raw[16 * column.offset : 16 * (column.offset + len(column))]))
        self._ids.add(np.concatenate([hashes_of([]), *found]))
        users = self._db.execute("SELECT DISTINCT user_id FROM tombstones").fetchall()
        self._forgetting.add(hashes_of_names(user_id for (user_id,) in users))

    def perhaps(self, names: Iterable[Named]) -> list[Named]:
        """Return the names (user, id) whose id may be that of an applied event or of a stored memory or near-copy.

        Stored memories include archived ones. The ids of all other names are certainly not in the catalog.
        """
        asked = list(names)
        return [asked[place] for place in np.flatnonzero(self._ids.may_hold(hashes_of([one[1] for one in asked])))]

    def knows(self, ids: Sequence[uuid.UUID]) -> npt.NDArray[np.bool_]:
        """Return bool[n]: whether each id is that of an applied event, a memory, a near-copy or an archived memory.

        Ids that were deleted since the shard was opened count, too. No statement runs: the hashes have 64 bits, which
        is enough to distinguish ids that no client has chosen.
        """
        return self._ids.may_hold(hashes_of(ids))

    def applied(self, events: Iterable[Named]) -> set[Named]:
        """Return the events (user, event id) that are applied already.

        An event id that an older version stored without a user is taken as applied for every user.
        """
        asked = self.perhaps(events)
        if not asked:
            return set()
        rows = self._over(
            named_table(asked),
            "SELECT w.user_id, w.id FROM applied a JOIN staging w ON a.event_id = w.id "
            "AND coalesce(a.user_id, w.user_id) = w.user_id",
        ).fetchall()
        return {(user_id, event_id) for user_id, event_id in rows}

    def by_id(self, names: Iterable[Named]) -> list[Memory]:
        """Return the memories with these ids.

        A first query reads only two columns, to find the numbers of these memories. Most calls find only a few.
        """
        asked = self.perhaps(names)
        if not asked:
            return []
        rows = self._over(
            named_table(asked), "SELECT seq FROM memories SEMI JOIN staging USING (id, user_id)"
        ).fetchall()
        return list(self.by_seq(seq for (seq,) in rows).values())

    def by_seq(self, seqs: Iterable[int]) -> dict[int, Memory]:
        wanted = pa.array(list(seqs), pa.int64())
        if not len(wanted):
            return {}
        found = f"SELECT {COLUMNS} FROM memories WHERE seq IN (SELECT seq FROM staging)"
        rows = self._over(pa.table({"seq": wanted}), found).fetchall()
        return {memory.seq: memory for memory in map(memory_of, rows)}

    def of_user(self, user_id: str) -> list[Memory]:
        """Return all memories of a user, oldest first, without archived ones."""
        rows = self._db.execute(
            f"SELECT {COLUMNS} FROM memories WHERE user_id = ? ORDER BY created_at, seq", [user_id]
        ).fetchall()
        return [memory_of(row) for row in rows]

    def tombstones(self, user_ids: Iterable[str]) -> list[Tombstone]:
        users = list(user_ids)
        asked = [
            user for user, held in zip(users, self._forgetting.may_hold(hashes_of_names(users)), strict=True) if held
        ]
        if not asked:
            return []
        rows = self._over(
            pa.table({"user_id": pa.array(asked, pa.string())}),
            "SELECT user_id, memory_id, epoch_ms(forgotten_at), epoch_ms(seen_at) FROM tombstones "
            "WHERE user_id IN (SELECT user_id FROM staging)",
        ).fetchall()
        return [Tombstone(*row) for row in rows]

    def seqs(self) -> npt.NDArray[np.int64]:
        """Return the numbers of all memories that have a vector, ascending."""
        found = self._db.execute("SELECT seq FROM vectors ORDER BY seq").fetchnumpy()["seq"]
        return np.asarray(found, np.int64)

    def standing(self) -> dict[str, npt.NDArray[Any]]:
        """Return columns of all memories as arrays, by the name of the column. Rows are in ascending order of `seq`.

        The columns are those that an access changes, and `pinned` and `current`.
        """
        return self._db.execute(
            "SELECT seq, importance, epoch_ms(last_accessed) AS last_accessed, access_count, pinned, "
            "summarized_by IS NULL AND superseded_by IS NULL AS current FROM memories ORDER BY seq"
        ).fetchnumpy()

    def behind(self, user_id: str, ids: Iterable[uuid.UUID]) -> list[Memory]:
        """Return the user's memories that were summarized or superseded by a memory with one of these ids."""
        rows = self._over(
            pa.table({"id": uuids(ids)}),
            f"SELECT {COLUMNS} FROM memories WHERE user_id = ? AND (summarized_by IN (SELECT id FROM staging) "
            "OR superseded_by IN (SELECT id FROM staging))",
            user_id,
        ).fetchall()
        return [memory_of(row) for row in rows]

    def summed_up_in(self, user_id: str, ids: Iterable[uuid.UUID]) -> set[uuid.UUID]:
        """Return the ids of all summaries ever made of these memories, even of summaries that no longer exist."""
        rows = self._over(
            pa.table({"id": uuids(ids)}),
            "SELECT cast(details ->> 'by' AS UUID) FROM history "
            "WHERE user_id = ? AND event = 'summarized' AND memory_id IN (SELECT id FROM staging)",
            user_id,
        ).fetchall()
        return {row[0] for row in rows}

    def merged(self, names: Iterable[Named]) -> dict[Named, uuid.UUID]:
        """Return the near-copies among these names, each with the id of the memory into which it was merged."""
        asked = self.perhaps(names)
        if not asked:
            return {}
        rows = self._over(
            named_table(asked),
            "SELECT m.user_id, m.memory_id, m.into_id FROM merged m "
            "JOIN staging w ON m.memory_id = w.id AND m.user_id = w.user_id",
        ).fetchall()
        return {(user_id, memory_id): into_id for user_id, memory_id, into_id in rows}

    def merged_into(self, user_id: str, memory_id: uuid.UUID) -> set[uuid.UUID]:
        """Return the ids of the near-copies that were merged into a memory."""
        rows = self._db.execute(
            "SELECT memory_id FROM merged WHERE user_id = ? AND into_id = ?", [user_id, memory_id]
        ).fetchall()
        return {row[0] for row in rows}

    def merged_after(self, user_id: str, moment: int) -> set[uuid.UUID]:
        """Return the ids of the user's near-copies that are dated after a time (epoch ms)."""
        rows = self._db.execute(
            "SELECT memory_id FROM merged WHERE user_id = ? AND epoch_ms(said_at) > ?",
            [user_id, moment],
        ).fetchall()
        return {row[0] for row in rows}

    def links_of(self, user_id: str, memory_id: uuid.UUID) -> list[NewLink]:
        """Return the links from and to a memory, oldest first, without links to archived or removed memories."""
        rows = self._db.execute(
            "SELECT user_id, source_id, target_id, kind, weight, epoch_ms(created_at) FROM links "
            "WHERE user_id = $user AND (source_id = $id OR target_id = $id) "
            "AND CASE WHEN source_id = $id THEN target_id ELSE source_id END "
            "IN (SELECT id FROM memories WHERE user_id = $user) "
            "ORDER BY created_at, source_id, target_id, kind",
            {"id": memory_id, "user": user_id},
        ).fetchall()
        return [NewLink(*row) for row in rows]

    def all_links_of(self, user_id: str) -> list[NewLink]:
        """Return the links between a user's memories, oldest first, each once."""
        rows = self._db.execute(
            "SELECT user_id, source_id, target_id, kind, weight, epoch_ms(created_at) FROM links WHERE user_id = ? "
            "ORDER BY created_at, source_id, target_id, kind",
            [user_id],
        ).fetchall()
        return [NewLink(*row) for row in rows]

    def last_edits(self, user_id: str) -> dict[uuid.UUID, int]:
        """Return the time (epoch ms) of the last edit of each edited memory of the user.

        If a near-copy replaced a memory's text, this counts as an edit.
        """
        rows = self._db.execute(
            "SELECT memory_id, epoch_ms(max(occurred_at)) FROM history WHERE user_id = ? "
            "AND event IN ('edited', 'merged') AND json_exists(details, '$.before') GROUP BY memory_id",
            [user_id],
        ).fetchall()
        return dict(rows)

    def users(self) -> list[Holdings]:
        """Return the users with memories, in alphabetical order; archived memories do not count."""
        rows = self._db.execute(
            "SELECT user_id, count(*), epoch_ms(min(created_at)), epoch_ms(max(created_at)) FROM memories "
            "GROUP BY user_id ORDER BY user_id"
        ).fetchall()
        return [Holdings(*row) for row in rows]

    def users_with(self, memory_id: uuid.UUID) -> list[str]:
        """Return the users who have a memory, an archived memory or a merged near-copy with this id.

        An unknown id needs no query.
        """
        if not self.knows([memory_id])[0]:
            return []
        rows = self._db.execute(
            "SELECT user_id FROM memories WHERE id = $id UNION SELECT user_id FROM archive WHERE id = $id "
            "UNION SELECT user_id FROM merged WHERE memory_id = $id ORDER BY 1",
            {"id": memory_id},
        ).fetchall()
        return [user_id for (user_id,) in rows]

    def history(self, user_id: str, memory_id: uuid.UUID) -> list[Done]:
        """Return a memory's events and changes of state since its creation, oldest first."""
        rows = self._db.execute(
            "SELECT memory_id, user_id, epoch_ms(occurred_at), event, details FROM ("
            "SELECT memory_id, user_id, occurred_at, event, details FROM history "
            "WHERE user_id = $user AND memory_id = $id UNION ALL "
            "SELECT memory_id, user_id, occurred_at, 'transition', json_object('from', from_state, 'to', to_state, "
            "'score', shown_score(score), 'reason', reason) FROM transitions "
            "WHERE user_id = $user AND memory_id = $id) ORDER BY occurred_at",
            {"id": memory_id, "user": user_id},
        ).fetchall()
        return [Done(row[0], row[1], row[2], row[3], orjson.loads(row[4])) for row in rows]

    def _over(self, staging: pa.Table, sql: str, *parameters: object) -> duckdb.DuckDBPyConnection:
        """Execute a statement that reads the table `staging`. DuckDB finds this Python variable by its name.

        DuckDB's `register` would first make a view, which takes longer than the statement itself if there are few
        rows. Later statements would then find that view instead of the variable.
        """
        return self._db.execute(self._parsed[sql], parameters)

    def rating(self, memory_id: uuid.UUID, model: str) -> int | None:
        """Return the stored rating of this exchange by the model; None if no rating is stored."""
        rows = self._db.execute(
            "SELECT value FROM ratings WHERE memory_id = ? AND model = ?", [memory_id, model]
        ).fetchall()
        return int(rows[0][0]) if rows else None

    def newest_users(self, most: int) -> list[UserCount]:
        """Return the `most` users whose memories were created or accessed last, newest first."""
        rows = self._db.execute(statement("newest_users"), {"most": most}).fetchall()
        return [UserCount(*row) for row in rows]

    def count(self) -> int:
        return int(self._one("SELECT count(*) FROM memories"))

    def expired_items(self, now: int, most: int) -> list[ExpiredItem]:
        """Return at most `most` items that have expired as of `now` (epoch ms), in order of expiry."""
        rows = self._db.execute(statement("expired_items"), {"now": now, "most": most}).fetchall()
        return [ExpiredItem(*row) for row in rows]

    def newest_event(self) -> int:
        """Return the time (epoch ms) of the newest creation, access or change of state; 0 in an empty shard."""
        return int(self._one(statement("newest_event")))

    def _one(self, sql: str) -> Any:
        (row,) = self._db.execute(sql).fetchall()  # fetchone() would leave the result, and the connection, open
        return row[0]
