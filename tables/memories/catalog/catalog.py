"""Catalog: the DuckDB rows of one shard, the materialised state of its partition's memories."""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

import duckdb
import numpy as np
import numpy.typing as npt
import orjson
import pyarrow as pa

from schemas.errors import EmbeddingMismatch
from schemas.memories import Memory
from schemas.settings import LifecycleSettings
from schemas.times import SKEW_MS
from tables.analysts.copy import Fingerprint, export
from tables.database.database import ALONE
from tables.database.migrations import migrate, statement, transaction
from tables.database.parsed import Parsed
from tables.database.shard_info import InfoTable, ShardInfo
from tables.memories.catalog.ageing import Ageing
from tables.memories.catalog.archive import ArchiveTable, ToArchive
from tables.memories.catalog.catalog_file import CatalogFile
from tables.memories.catalog.cleanup import Cleanup
from tables.memories.catalog.columns import table_of, uuids
from tables.memories.catalog.erasing import Erasing, Named, named_table
from tables.memories.catalog.erasures import Erasure, erasure
from tables.memories.catalog.hold import Held, Hold
from tables.memories.catalog.memory_rows import COLUMNS, STORED, memory_of, staged
from tables.memories.catalog.reembedding import Reembedding
from tables.memories.catalog.retention import Retention
from tables.memories.catalog.stored_vectors import ReadVectors, StoredVectors, drop_other_files
from tables.memories.catalog.watermarks import Watermark, Watermarks
from tables.unused_memory import give_back
from tables.vectors.index import Seqs, Vectors, matrix
from tables.vectors.known_ids import KnownIds, hashes_of, hashes_of_bytes, hashes_of_names
from tables.vectors.manifest import Stamp

#: Ids that are read from the tables at a time.
_IDS_AT_A_TIME: Final = 122_880


class NewLink(NamedTuple):
    user_id: str
    source_id: uuid.UUID
    target_id: uuid.UUID
    kind: str
    weight: float
    created_at: int


class Unlinked(NamedTuple):
    user_id: str
    source_id: uuid.UUID
    target_id: uuid.UUID
    kind: str


class Merged(NamedTuple):
    """A near-copy, and the memory into which it was merged."""

    memory_id: uuid.UUID
    user_id: str
    into_id: uuid.UUID
    #: Epoch ms.
    said_at: int


class Move(NamedTuple):
    """A change of a memory's state or place, with its score at that moment (epoch ms)."""

    memory_id: uuid.UUID
    user_id: str
    from_state: str
    to_state: str
    score: float
    occurred_at: int
    reason: str


class Done(NamedTuple):
    """What was done to a memory, at `occurred_at` (epoch ms)."""

    memory_id: uuid.UUID
    user_id: str
    occurred_at: int
    event: str
    details: dict[str, Any]


class ExpiredItem(NamedTuple):
    """An item that has expired, and when (epoch ms)."""

    user_id: str
    memory_id: uuid.UUID
    expired_at: int


class Holdings(NamedTuple):
    """How many memories a user has, and when the oldest and the newest were made (epoch ms)."""

    user_id: str
    memories: int
    oldest: int
    newest: int


class UserCount(NamedTuple):
    """How many memories a user has, and when one of them was made or read last (epoch ms)."""

    user_id: str
    memories: int
    newest: int


class Tombstone(NamedTuple):
    """A memory that was forgotten; `memory_id` None: all of the user's memories up to `forgotten_at` (epoch ms).

    `seen_at` is the newest time of the user's memories at that moment.
    """

    user_id: str
    memory_id: uuid.UUID | None
    forgotten_at: int
    seen_at: int | None = None

    def as_of(self, now: int) -> Tombstone:
        """Return the tombstone as it applies at `now` (epoch ms) to later events of the log.

        If `forgotten_at` is in the future, by more than `SKEW_MS`, a clock was ahead: then it reaches only up to
        `seen_at`, if that is known.
        """
        if self.seen_at is None or self.forgotten_at <= now + SKEW_MS:
            return self
        return self._replace(forgotten_at=self.seen_at)


@dataclass(slots=True)
class Changes:
    """The changes of one batch of events, written in one transaction.

    Memories and vectors are keyed by number (`seq`); only the vectors of `new` are written. `unarchived` and
    `dropped` are numbers, too. `forgotten` names memories, existing or not, whose words are all erased; for
    `forgotten_users`, the words of all memories so far are.
    """

    new: dict[int, Memory] = field(default_factory=dict)
    vectors: dict[int, Vectors] = field(default_factory=dict)
    updated: dict[int, Memory] = field(default_factory=dict)
    archived: list[ToArchive] = field(default_factory=list)
    unarchived: list[int] = field(default_factory=list)
    dropped: list[int] = field(default_factory=list)
    forgotten: list[Named] = field(default_factory=list)
    forgotten_users: list[str] = field(default_factory=list)
    links: list[NewLink] = field(default_factory=list)
    unlinked: list[Unlinked] = field(default_factory=list)
    merged: list[Merged] = field(default_factory=list)
    moves: list[Move] = field(default_factory=list)
    history: list[Done] = field(default_factory=list)
    tombstones: list[Tombstone] = field(default_factory=list)
    applied: list[Named] = field(default_factory=list)
    #: How many numbers were given to new rows.
    numbered: int = 0
    #: An offset in the log after the events; None if they do not come from the log.
    log_end: int | None = None

    def matrix(self) -> Vectors:
        """Return the vectors of `new`, float32[n, d], in its order; `new` must not be empty."""
        return matrix([self.vectors[seq] for seq in self.new])

    @property
    def changes_archive(self) -> bool:
        """Whether these users' cached archive rows must be read again."""
        return bool(self.archived or self.unarchived or self.forgotten or self.forgotten_users)

    @property
    def leaving(self) -> list[int]:
        """The numbers of the rows that leave the table `memories`, and whose vectors leave the index."""
        return [*self.dropped, *(row.seq for row in self.archived)]


_Part = InfoTable | Erasing | Ageing | ArchiveTable | StoredVectors | Reembedding | Cleanup | Watermarks | Retention


class Catalog:
    """One shard's `catalog.duckdb`. Not thread-safe: the shard serialises its use.

    DuckDB works with `memory` bytes. Raises `ShardLocked`, `ShardError` and `DataDirError`.
    """

    def __init__(self, path: Path, partition: int, memory: int = ALONE) -> None:
        self.partition = partition
        self._file = CatalogFile(path, partition, memory)
        self._db = self._file.db
        self._parsed = Parsed(self._db)
        self._vector_files: list[StoredVectors] = []
        self._hold = Hold(self._file)
        try:
            migrate(self._db, partition)
            self.info = InfoTable(self._db)
            info = self.info.read()
            assert info.next_seq is not None, "a migration writes it"
            #: The number of the next new row; a number is never reused.
            self.next_seq = info.next_seq
            #: The offset in the log up to which the events are applied; 0 in a new shard.
            self.position = info.position or 0
            #: How often the memories changed since the shard was created.
            self.changes = info.changes or 0
            self._ids, self._forgetting = KnownIds(), KnownIds()
            self._fill_known_ids()
            self.ageing = Ageing(self._db, self.info)
            self.archive = ArchiveTable(self._db)
            self._vectors = StoredVectors(self._db, path.parent, partition, self.info)
            self._vector_files.append(self._vectors)
            self.reembedding = Reembedding(self._db, path.parent, partition, self.info, self._vectors, self.archive)
            self._vector_files.append(self.reembedding.vectors)
            for vectors in self._vector_files:
                vectors.hold = self._hold
            drop_other_files(path.parent, [vectors.file_number for vectors in self._vector_files])
            self._erasing = Erasing(self._db, self.info, self.reembedding)
            self.cleanup = Cleanup(self._db)
            self.watermarks = Watermarks(self._db)
            self.retention = Retention(self._db, self.info)
        except BaseException:
            self.close()
            raise

    @property
    def _parts(self) -> tuple[_Part, ...]:
        parts = self.ageing, self.archive, self.reembedding, self.cleanup, self.watermarks, self.retention
        return self.info, self._vectors, self._erasing, *parts

    def keep_watermark(self, mark: Watermark, now: int, keep_days: float) -> int:
        """See `Watermarks.add`. Frees the memory of the ids that were dropped."""
        dropped = self.watermarks.add(mark, now, keep_days)
        if dropped:
            self._ids, self._forgetting = KnownIds(), KnownIds()
            self._fill_known_ids()
        return dropped

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
        """Return the names that a table may contain, as event, memory, near-copy or archived memory."""
        asked = list(names)
        return [asked[place] for place in np.flatnonzero(self._ids.may_hold(hashes_of([one[1] for one in asked])))]

    def knows(self, ids: Sequence[uuid.UUID]) -> npt.NDArray[np.bool_]:
        """Return bool[n]: the ids that are, or were since the opening, events, memories, near-copies or archived.

        It runs no statement: 64-bit hashes are enough to tell apart ids that no client has chosen.
        """
        return self._ids.may_hold(hashes_of(ids))

    @property
    def to_erase(self) -> bool:
        """Whether the file's pages or write-ahead log may still contain forgotten data."""
        return bool(self.info.read().to_erase)

    def erase(self) -> None:
        """Rewrite the files so that they contain existing rows only. It takes as long as copying them.

        Raises `DataDirError` if the disk has no room for a copy; the old file then stays in use.
        """
        self._hold.end()
        for vectors in self._vector_files:
            vectors.tidy()
        try:
            self._file.rewrite()
        finally:
            if self._db is not self._file.db:
                self._db = self._file.db
                self._parsed = Parsed(self._db)
                for part in self._parts:
                    part.connect(self._db)

    def hold(self) -> Held:
        """Bring the files to one state; `held_files` keep it until `release`, or until something is forgotten."""
        return self._hold.begin()

    def release(self, held: Held | None = None) -> None:
        """End this hold; without an argument, any hold."""
        self._hold.end(held)

    @property
    def held_files(self) -> list[tuple[Path, int]]:
        """The authoritative files, and how many bytes of each; all other files are caches."""
        files = [vectors.held for vectors in self._vector_files]
        return [(self._file.path, self.bytes), *(file for file in files if file is not None)]

    @property
    def bytes(self) -> int:
        """The size of the DuckDB file."""
        return self._file.path.stat().st_size

    def limit_memory(self, memory: int) -> None:
        """Limit DuckDB to `memory` bytes of memory from now on."""
        self._file.limit_memory(memory)

    def rest(self) -> None:
        """Release unused memory. Call it after work on many rows."""
        self._file.rest()
        give_back()

    def close(self) -> None:
        """Release the files. A second call does nothing."""
        self._hold.end()
        for vectors in self._vector_files:
            vectors.close()
        self._file.close()

    def bind_model(self, model: str, dimension: int) -> None:
        """Record the model of the shard's vectors. Raises `EmbeddingMismatch` if they come from another."""
        info = self.info.read()
        if info.model is None:
            with transaction(self._db):
                noted = self._vectors.begin(dimension)
                self.info.write(replace(noted, model=model, dimension=dimension))
        elif (info.model, info.dimension) != (model, dimension):
            raise EmbeddingMismatch(
                self.partition,
                f"its vectors come from {info.model} ({info.dimension} dimensions), not from {model} "
                f"({dimension}): set `embedding` back, or run `siltstone reembed`",
            )

    def applied(self, events: Iterable[Named]) -> set[Named]:
        """Return the events that are applied already. An id that was stored without a user counts for each."""
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
        """Return the memories with these ids. Numbers first: most lookups find few, and read two columns."""
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
        """All memories of a user, oldest first."""
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

    def vectors(self, seqs: npt.NDArray[np.int64]) -> tuple[list[str], npt.NDArray[np.float32]]:
        """User ids and vectors, float32[n, d], of `seqs`, in their order."""
        return self._users_of(seqs), self._vectors.of(seqs)

    def vectors_later(self, seqs: npt.NDArray[np.int64]) -> tuple[list[str], ReadVectors]:
        """Return user ids of `seqs`, in their order, and a function that reads the vectors at places of it."""
        return self._users_of(seqs), self._vectors.reader(seqs)

    def _users_of(self, seqs: npt.NDArray[np.int64]) -> list[str]:
        self._db.register("wanted", pa.table({"seq": seqs, "place": np.arange(len(seqs))}))
        users = self._db.execute("SELECT user_id FROM wanted JOIN memories USING (seq) ORDER BY place").fetchall()
        return [user_id for (user_id,) in users]

    def seqs(self) -> npt.NDArray[np.int64]:
        """The numbers of all memories that have a vector, ascending."""
        found = self._db.execute("SELECT seq FROM vectors ORDER BY seq").fetchnumpy()["seq"]
        return np.asarray(found, np.int64)

    def standing(self) -> dict[str, npt.NDArray[Any]]:
        """Return, for all memories by ascending `seq`, what an access changes, and `pinned` and `current`."""
        return self._db.execute(
            "SELECT seq, importance, epoch_ms(last_accessed) AS last_accessed, access_count, pinned, "
            "summarized_by IS NULL AND superseded_by IS NULL AS current FROM memories ORDER BY seq"
        ).fetchnumpy()

    def next_stamp(self, held: Stamp | None) -> Stamp:
        """Return the stamp for a manifest that is about to replace one with the stamp `held`.

        Both stamps fit from now on: the new manifest may never be written.
        """
        identity = self.info.read().identity
        assert identity is not None, "a migration writes it"
        stamp = Stamp(identity, secrets.randbits(62) + 1)
        before = held.generation if held is not None and self.fits(held) else 0
        with transaction(self._db):
            self.info.write(ShardInfo(index=stamp.generation, index_before=before))
        return stamp

    def fits(self, stamp: Stamp | None) -> bool:
        """Whether a manifest with this stamp belongs to this catalog: it is the newest stamp or the one before."""
        if stamp is None:
            return False
        info = self.info.read()
        return stamp.shard == info.identity and stamp.generation in (info.index or 0, info.index_before or 0)

    def behind(self, user_id: str, ids: Iterable[uuid.UUID]) -> list[Memory]:
        """Return the user's memories that one of these summarizes or supersedes."""
        rows = self._over(
            pa.table({"id": uuids(ids)}),
            f"SELECT {COLUMNS} FROM memories WHERE user_id = ? AND (summarized_by IN (SELECT id FROM staging) "
            "OR superseded_by IN (SELECT id FROM staging))",
            user_id,
        ).fetchall()
        return [memory_of(row) for row in rows]

    def summed_up_in(self, user_id: str, ids: Iterable[uuid.UUID]) -> set[uuid.UUID]:
        """Return the ids of all summaries ever made of these memories, whether either still exists or not."""
        rows = self._over(
            pa.table({"id": uuids(ids)}),
            "SELECT cast(details ->> 'by' AS UUID) FROM history "
            "WHERE user_id = ? AND event = 'summarized' AND memory_id IN (SELECT id FROM staging)",
            user_id,
        ).fetchall()
        return {row[0] for row in rows}

    def merged(self, names: Iterable[Named]) -> dict[Named, uuid.UUID]:
        """Return, for each of these that is a near-copy, the memory into which it was merged."""
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
        """Return the ids of the user's near-copies that were said after a moment (epoch ms)."""
        rows = self._db.execute(
            "SELECT memory_id FROM merged WHERE user_id = ? AND epoch_ms(said_at) > ?",
            [user_id, moment],
        ).fetchall()
        return {row[0] for row in rows}

    def links_of(self, user_id: str, memory_id: uuid.UUID) -> list[NewLink]:
        """Return links from and to a memory, oldest first, without those whose other end is archived."""
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
        """Links between a user's memories, oldest first, each once."""
        rows = self._db.execute(
            "SELECT user_id, source_id, target_id, kind, weight, epoch_ms(created_at) FROM links WHERE user_id = ? "
            "ORDER BY created_at, source_id, target_id, kind",
            [user_id],
        ).fetchall()
        return [NewLink(*row) for row in rows]

    def last_edits(self, user_id: str) -> dict[uuid.UUID, int]:
        """Return when each edited memory of the user was last edited, or reworded by a near-copy (epoch ms)."""
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
        """Return the users with a memory, archived memory or near-copy of this id; an unknown id needs no query."""
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

    def write(self, changes: Changes, now: int, position: int | None = None) -> None:
        """Commit a batch in one transaction: rows, the vectors' slots, the applied event ids and the position."""
        self._know(changes)
        going = [*changes.leaving, *changes.unarchived]
        before = [vectors.slots_of(going) for vectors in self._vector_files]
        with transaction(self._db):
            if changes.new:
                self._insert(list(changes.new.values()), changes.matrix())
            if changes.updated:
                self._update(list(changes.updated.values()))
                into = {(one.user_id, one.into_id) for one in changes.merged}
                self._add_sources([one for one in changes.updated.values() if into and (one.user_id, one.id) in into])
                self.ageing.touched(memory.seq for memory in changes.updated.values())
            if changes.archived:
                leaving = np.array([row.seq for row in changes.archived], np.int64)
                self.archive.put(changes.archived, self._vectors.of(leaving))
            self._erasing.erase(changes.leaving, changes.unarchived, changes.forgotten, changes.forgotten_users)
            self._write_links(changes)
            self._note(changes)
            if changes.applied:
                self._over(
                    named_table(changes.applied),
                    "INSERT INTO applied SELECT id, make_timestamp_ms(?), user_id, ? FROM staging",
                    now,
                    changes.log_end if position is None else position,
                )
            done = ShardInfo(next_seq=self.next_seq + changes.numbered, position=position, changes=self.changes + 1)
            self.info.write(done)
        self.next_seq += changes.numbered
        self.changes += 1
        if position is not None:
            self.position = position
        if changes.forgotten or changes.forgotten_users:
            self._hold.end()
        if going:
            for vectors, slots in zip(self._vector_files, before, strict=True):
                vectors.wipe(np.setdiff1d(slots, vectors.slots_of(going)))

    def _know(self, changes: Changes) -> None:
        """Add the new ids to the known ids. If the commit fails, they do no harm.

        Archived memories are known already.
        """
        ids = [event_id for _, event_id in changes.applied]
        ids += [memory.id for memory in changes.new.values()]
        ids += [one.memory_id for one in changes.merged]
        self._ids.add(hashes_of(ids))
        if changes.tombstones:
            self._forgetting.add(hashes_of_names(one.user_id for one in changes.tombstones))

    def recompute(self, now: int, lifecycle: LifecycleSettings, before: Callable[[Seqs], None]) -> list[str]:
        """Store the states as of `now` (epoch ms). Return users whose memories changed: see `Ageing.recompute`."""
        users = self.ageing.recompute(now, lifecycle, before)
        self.changes += bool(users)
        return users

    def _over(self, staging: pa.Table, sql: str, *parameters: object) -> duckdb.DuckDBPyConnection:
        """Execute a statement that reads `staging`, which DuckDB finds by the name of the variable.

        `register` would make a view first, which takes longer than the few rows of a small batch. Later calls would
        then find the view instead of the variable.
        """
        return self._db.execute(self._parsed[sql], parameters)

    def _append(self, table: str, rows: Sequence[NamedTuple], columns: str = "*") -> None:
        """Insert all rows with one statement."""
        if rows:
            self._over(table_of(rows), f"INSERT INTO {table} SELECT {columns} FROM staging")

    def _insert(self, memories: Sequence[Memory], vectors: Vectors) -> None:
        self._over(staged(memories), f"INSERT INTO memories ({STORED}) SELECT * FROM staging")
        self._vectors.add(np.array([memory.seq for memory in memories], np.int64), vectors)

    def _update(self, memories: Sequence[Memory]) -> None:
        self._over(
            staged(memories),
            "UPDATE memories SET importance = staging.importance, "
            "last_accessed = staging.last_accessed, access_count = staging.access_count, "
            "pinned = staging.pinned, meta = staging.meta, summarized_by = staging.summarized_by, "
            "superseded_by = staging.superseded_by FROM staging WHERE memories.seq = staging.seq",
        )

    def _add_sources(self, memories: Sequence[Memory]) -> None:
        """Update message ids only where sources were added: an update of a list rewrites the whole row."""
        if memories:
            sources = {memory.seq: list(memory.message_ids) for memory in memories}
            lists = pa.array(list(sources.values()), pa.list_(pa.string()))
            self._over(
                pa.table({"seq": list(sources), "message_ids": lists}),
                "UPDATE memories SET message_ids = staging.message_ids FROM staging WHERE memories.seq = staging.seq",
            )

    def _write_links(self, changes: Changes) -> None:
        if changes.unlinked:
            self._over(
                table_of(changes.unlinked),
                "DELETE FROM links USING staging WHERE links.user_id = staging.user_id "
                "AND links.source_id = staging.source_id "
                "AND links.target_id = staging.target_id AND links.kind = staging.kind",
            )
        self._append("links", changes.links)

    def _note(self, changes: Changes) -> None:
        """Append near-copies, transitions, history and tombstones."""
        self._append("merged", changes.merged)
        self._append("transitions", changes.moves, "*, false")
        self._append("history", changes.history)
        self._append("tombstones", changes.tombstones)

    def erasure(self, user_id: str) -> Erasure:
        """Return what was forgotten of a user, and which of the user's rows are left."""
        return erasure(self._db, user_id, self.to_erase)

    def rating(self, memory_id: uuid.UUID, model: str) -> int | None:
        """Return the model's rating of this exchange; None if the model was not asked."""
        rows = self._db.execute(
            "SELECT value FROM ratings WHERE memory_id = ? AND model = ?", [memory_id, model]
        ).fetchall()
        return int(rows[0][0]) if rows else None

    def keep_rating(self, memory_id: uuid.UUID, model: str, rating: int, now: int) -> None:
        self._db.execute(
            "INSERT INTO ratings VALUES (?, ?, ?, make_timestamp_ms(?))", [memory_id, model, rating, now]
        )

    def export(self, folder: Path, copied: Fingerprint | None) -> tuple[Fingerprint, frozenset[str]] | None:
        """Stage the rows for the analysts' copy. Return the new fingerprint and the exported tables.

        Return None if nothing changed since `copied`.
        """
        now = Fingerprint.of(self._file.path)
        return None if now == copied else (now, export(self._db, self.partition, folder))

    def newest_users(self, most: int) -> list[UserCount]:
        """Return the users whose memories were created or accessed last."""
        rows = self._db.execute(statement("newest_users"), {"most": most}).fetchall()
        return [UserCount(*row) for row in rows]

    def count(self) -> int:
        return int(self._one("SELECT count(*) FROM memories"))

    def expired_items(self, now: int, most: int) -> list[ExpiredItem]:
        """Return at most `most` items that have expired as of `now` (epoch ms), in order of expiry."""
        rows = self._db.execute(statement("expired_items"), {"now": now, "most": most}).fetchall()
        return [ExpiredItem(*row) for row in rows]

    def newest_event(self) -> int:
        """Epoch ms of the newest creation, access or change of state; 0 in an empty shard."""
        return int(self._one(statement("newest_event")))

    def _one(self, sql: str) -> Any:
        (row,) = self._db.execute(sql).fetchall()  # fetchone() would leave the result, and the connection, open
        return row[0]
