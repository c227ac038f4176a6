"""Queries of a catalog about the rows that a batch of events reads. None of them changes a row."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from schemas.memories import Memory
from tables.memories.catalog.changes import Tombstone
from tables.memories.catalog.columns import uuids
from tables.memories.catalog.erasing import Named, named_table
from tables.memories.catalog.ids import Ids
from tables.memories.catalog.memory_rows import COLUMNS, memory_of
from tables.memories.catalog.part import Part


class CatalogQueries(Part):
    """The queries of a catalog about memories, near-copies and tombstones. `ids` are the ids that it knows."""

    ids: Ids

    def applied(self, events: Iterable[Named]) -> set[Named]:
        """Return the events (user, event id) that are applied already.

        An event id that an older version stored without a user is taken as applied for every user.
        """
        asked = self.ids.perhaps(events)
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
        asked = self.ids.perhaps(names)
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

    def seqs_of(self, user_id: str, first: int) -> list[int]:
        """Return the numbers of the user's memories from `first` on, ascending, without archived ones."""
        rows = self._db.execute(
            "SELECT seq FROM memories WHERE user_id = ? AND seq >= ? ORDER BY seq", [user_id, first]
        ).fetchall()
        return [seq for (seq,) in rows]

    def tombstones(self, user_ids: Iterable[str]) -> list[Tombstone]:
        asked = self.ids.with_tombstones(user_ids)
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

    def merged(self, names: Iterable[Named]) -> dict[Named, uuid.UUID]:
        """Return the near-copies among these names, each with the id of the memory into which it was merged."""
        asked = self.ids.perhaps(names)
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

    def count(self) -> int:
        return int(self._one("SELECT count(*) FROM memories"))
