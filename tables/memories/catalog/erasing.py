"""Erasing: deletes the rows of memories, and all rows about forgotten memories and users, from a shard's tables.

A test checks that the constants below name every table of the schema. Add each new table to one of them.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Final

import pyarrow as pa

from tables.database.shard_info import InfoTable, ShardInfo
from tables.memories.catalog.catalog_file import CatalogFile
from tables.memories.catalog.columns import texts, uuids
from tables.memories.catalog.part import Part
from tables.memories.catalog.reembedding import ROWS, Reembedding

#: A user id, and the id of an event or memory. Events or memories of two users may have the same id.
Named = tuple[str, uuid.UUID]

#: Tables with a memory's own rows, which are found by its number.
NUMBERED: Final = ("memories", "archive", "vectors", "vectors_next")
#: Tables with rows about a user's memories, and their columns with the ids of these memories.
NAMING: Final = {"history": ("memory_id",), "links": ("source_id", "target_id"), "merged": ("into_id", "memory_id")}
#: Tables whose rows stay when a memory or a user is forgotten, each with the reason.
KEPT: Final = {
    "transitions": "the audit trail: ids, states and times. A reason that is not ours becomes 'erased'",
    "tombstones": "they keep forgotten memories from coming back when the log is read again",
    "applied": "ids of events, so that an event that is read again changes nothing",
    "ratings": "numbers by id, without words, so that no replay pays for a rating twice. Retention drops them",
    "watermarks": "offsets of the log, which belong to no user",
    "shard_info": "the shard's own",
    "migrations": "the schema's",
}
#: Reasons why a recompute changed a memory's state.
RECOMPUTED: Final = ("decay", "access", "pin", "settings", "clock")
#: Reasons of transitions that contain no words of the user.
OUR_REASONS: Final = (*RECOMPUTED, "cleanup", "retention", "restore", "forget", "expired", "manual", "erased")


class Erasing(Part):
    """Erases rows of a catalog, as a part of its transactions."""

    def __init__(self, file: CatalogFile, info: InfoTable, reembedding: Reembedding) -> None:
        super().__init__(file)
        self._info, self._reembedding = info, reembedding

    def erase(
        self, memories: Sequence[int], archived: Sequence[int], forgotten: Sequence[Named], users: Sequence[str]
    ) -> None:
        """Delete the rows with the numbers `memories` and `archived`, and all rows about `forgotten` and `users`.

        `forgotten` are memories, which may have been removed before. The tables of `NAMING` then have no row about
        them, and none about `users`. Before the call, copy memories that move to the archive into it.
        """
        for table, seqs in (("memories", memories), ("vectors", memories), ("archive", archived)):
            if seqs:
                self._delete(table, _numbers(seqs))
        if self._reembedding.target is not None and (memories or archived):
            self._delete("vectors_next", _numbers([*memories, *archived]), f"AND seq NOT IN ({ROWS})")
        if forgotten or users:
            self._forget(forgotten, users)

    def _delete(self, table: str, numbers: pa.Table, only: str = "") -> None:
        """Delete the rows with these numbers."""
        self._over(numbers, f"DELETE FROM {table} WHERE seq IN (SELECT seq FROM staging) {only}")

    def _forget(self, forgotten: Sequence[Named], users: Sequence[str]) -> None:
        """Erase the rows about these memories and users. The audit trail keeps their ids, but none of their words."""
        self._db.register("users", pa.table({"user_id": pa.array(users, pa.string())}))
        self._db.register("staged", named_table(forgotten))
        for table, columns in NAMING.items():
            for column in columns:
                self._db.execute(
                    f"DELETE FROM {table} USING staged "
                    f"WHERE {table}.user_id = staged.user_id AND {table}.{column} = staged.id"
                )
            self._db.execute(f"DELETE FROM {table} WHERE user_id IN (SELECT user_id FROM users)")
        self._db.execute(
            "UPDATE transitions SET reason = 'erased' WHERE NOT list_contains($ours, reason) AND "
            "(user_id IN (SELECT user_id FROM users) OR (user_id, memory_id) IN (SELECT (user_id, id) FROM staged))",
            {"ours": list(OUR_REASONS)},
        )
        again = ", valid_from = CASE WHEN valid_from = valid_to THEN NULL ELSE valid_from END, valid_to = NULL"
        for column, with_it in (("summarized_by", ""), ("superseded_by", again)):
            self._db.execute(
                f"UPDATE archive SET {column} = NULL{with_it} FROM staged "
                f"WHERE archive.user_id = staged.user_id AND archive.{column} = staged.id"
            )
        self._info.write(ShardInfo(to_erase=True))


def _numbers(seqs: Sequence[int]) -> pa.Table:
    return pa.table({"seq": pa.array(seqs, pa.int64())})


def named_table(names: Sequence[Named]) -> pa.Table:
    """Return a table with the columns `user_id` and `id`."""
    return pa.table({"user_id": texts([user_id for user_id, _ in names]), "id": uuids(one for _, one in names)})
