"""The progress and the state of the replay of one partition, in an SQLite file that is written in transactions."""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import orjson

from schemas.errors import DataDirError, SiltstoneError

#: The table `graves` has tombstones. Its name is kept, so that a replay that an earlier version began can continue.
SCHEMA = """
CREATE TABLE IF NOT EXISTS noted (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS rows (name TEXT, key BLOB, value BLOB NOT NULL, PRIMARY KEY (name, key)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS logged (event_id BLOB PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS graves (user_id TEXT NOT NULL, memory_id BLOB, until INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS earlier (name TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS found (
    place INTEGER PRIMARY KEY, event_id BLOB UNIQUE NOT NULL, at INTEGER NOT NULL, key BLOB, value BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS found_at ON found (at, place);
"""

#: The maximum number of promotions that one SQL statement reads.
PAGE = 1_000


class KeptPromotion(NamedTuple):
    """A promotion that is not in the log. `at` is its time in epoch ms."""

    event_id: uuid.UUID
    at: int
    key: bytes | None
    value: bytes


class WindowRow(NamedTuple):
    """A change of a row in the window table `name`. A value of None deletes the row."""

    name: str
    key: bytes
    value: bytes | None


class ReplayProgress:
    """The progress of one partition, in an SQLite file that only one process can open at a time.

    `noted` contains numbers by name: the counts of the replay, the number 1 for each completed step, and as `offset`
    the offset of `conversations` at which reading continues.
    """

    def __init__(self, path: Path) -> None:
        self._db = sqlite3.connect(path, timeout=1.0, isolation_level=None)
        try:
            self._db.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._db.execute("PRAGMA journal_mode = WAL")
            self._db.executescript(SCHEMA)
            self.noted: dict[str, int] = dict(self._db.execute("SELECT name, value FROM noted"))
            self._tombstones: dict[str, list[tuple[uuid.UUID | None, int]]] = {}
            for user_id, raw, until in self._db.execute("SELECT user_id, memory_id, until FROM graves"):
                self._add_tombstone(user_id, None if raw is None else uuid.UUID(bytes=raw), until)
        except sqlite3.Error as exc:
            self._db.close()
            if "locked" in str(exc):
                raise SiltstoneError(f"another replay is running in {path.parent}: wait for it, or stop it") from exc
            raise DataDirError(path, str(exc)) from exc

    def close(self) -> None:
        self._db.close()

    def note(self, **numbers: int) -> None:
        self.save((), (), numbers)

    def save(self, rows: Iterable[WindowRow], found: Iterable[KeptPromotion], numbers: Mapping[str, int]) -> None:
        """Write changes of window rows, found promotions and numbers to the file, in one transaction."""
        self.noted.update(numbers)
        with _transaction(self._db):
            for row in rows:
                if row.value is None:
                    self._db.execute("DELETE FROM rows WHERE name = ? AND key = ?", row[:2])
                else:
                    self._db.execute("INSERT OR REPLACE INTO rows VALUES (?, ?, ?)", row)
            self._db.executemany(
                "INSERT OR IGNORE INTO found (event_id, at, key, value) VALUES (?, ?, ?, ?)",
                ((one.event_id.bytes, *one[1:]) for one in found),
            )
            self._db.executemany("INSERT OR REPLACE INTO noted VALUES (?, ?)", numbers.items())

    def rows(self, name: str) -> Iterator[tuple[bytes, bytes]]:
        """Yield the keys and values of the window table `name`."""
        yield from self._db.execute("SELECT key, value FROM rows WHERE name = ?", (name,))

    def log(
        self,
        event_ids: Sequence[uuid.UUID],
        tombstones: Sequence[tuple[str, uuid.UUID | None, int]],
        numbers: Mapping[str, int],
    ) -> None:
        """Record that these promotions are in the log, and add tombstones and numbers.

        A tombstone consists of a user's id, a memory's id (None for all memories of the user), and the time in epoch
        ms up to which they are forgotten.
        """
        self.noted.update(numbers)
        with _transaction(self._db):
            self._db.executemany("INSERT OR IGNORE INTO logged VALUES (?)", ((one.bytes,) for one in event_ids))
            for user_id, memory_id, until in tombstones:
                self._add_tombstone(user_id, memory_id, until)
                self._db.execute(
                    "INSERT INTO graves VALUES (?, ?, ?)", (user_id, memory_id and memory_id.bytes, until)
                )
            self._db.executemany("INSERT OR REPLACE INTO noted VALUES (?, ?)", numbers.items())

    def in_log(self, event_id: uuid.UUID) -> bool:
        return bool(self._db.execute("SELECT 1 FROM logged WHERE event_id = ?", (event_id.bytes,)).fetchall())

    def forgotten(self, user_id: str, memory_id: uuid.UUID, created_at: int) -> bool:
        """True if this memory was forgotten by its id, or with all memories of the user up to a certain time.

        `created_at` is the memory's time in epoch ms.
        """
        return any(
            tombstone == memory_id or (tombstone is None and created_at <= until)
            for tombstone, until in self._tombstones.get(user_id, ())
        )

    def said_earlier(self, names: Iterable[str]) -> None:
        """Record that the messages with these names (see `message_name`) came before the replayed range."""
        with _transaction(self._db):
            self._db.executemany("INSERT OR IGNORE INTO earlier VALUES (?)", ((name,) for name in names))

    def earlier(self, name: str) -> bool:
        return bool(self._db.execute("SELECT 1 FROM earlier WHERE name = ?", (name,)).fetchall())

    def found(self) -> Iterator[KeptPromotion]:
        """Yield the found promotions, sorted by time, then by the order in which they were found.

        They are read page by page, because an unfinished SQL statement would keep the file locked after `close`.
        """
        last = (-1, -1)
        while page := self._db.execute(
            "SELECT at, place, event_id, key, value FROM found WHERE (at, place) > (?, ?) ORDER BY at, place LIMIT ?",
            (*last, PAGE),
        ).fetchall():
            for at, place, event_id, key, value in page:
                yield KeptPromotion(uuid.UUID(bytes=event_id), at, key, value)
                last = at, place

    def _add_tombstone(self, user_id: str, memory_id: uuid.UUID | None, until: int) -> None:
        self._tombstones.setdefault(user_id, []).append((memory_id, until))


class _transaction:  # noqa: N801  (lower case, because it is used like a statement)
    """A transaction around a `with` block: COMMIT at the end of the block, or ROLLBACK if it raises an exception."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    def __enter__(self) -> None:
        self._db.execute("BEGIN")

    def __exit__(self, exc_type: type[BaseException] | None, *_: object) -> None:
        self._db.execute("COMMIT" if exc_type is None else "ROLLBACK")


def message_name(user_id: str, session_id: str, message_id: str) -> str:
    """Return a name that is unique among the messages of a partition."""
    return orjson.dumps((user_id, session_id, message_id)).decode()
