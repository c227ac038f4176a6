"""The history of memories: their events, such as edits, pins and summaries, and the changes of their states."""

from __future__ import annotations

import uuid
from collections.abc import Iterable

import orjson
import pyarrow as pa

from tables.memories.catalog.changes import Done
from tables.memories.catalog.columns import uuids
from tables.memories.catalog.part import Part


class History(Part):
    """The tables `history` and `transitions` of a catalog."""

    def of(self, user_id: str, memory_id: uuid.UUID) -> list[Done]:
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

    def summed_up_in(self, user_id: str, ids: Iterable[uuid.UUID]) -> set[uuid.UUID]:
        """Return the ids of all summaries ever made of these memories, even of summaries that no longer exist."""
        rows = self._over(
            pa.table({"id": uuids(ids)}),
            "SELECT cast(details ->> 'by' AS UUID) FROM history "
            "WHERE user_id = ? AND event = 'summarized' AND memory_id IN (SELECT id FROM staging)",
            user_id,
        ).fetchall()
        return {row[0] for row in rows}
