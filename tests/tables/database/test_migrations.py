"""Numbered migrations of a shard's schema."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from schemas.errors import ShardError
from tables.database import migrations
from tables.database.migrations import available, migrate, transaction


@pytest.fixture
def db() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(":memory:") as connection:
        yield connection


def names(db: duckdb.DuckDBPyConnection) -> set[str]:
    return {row[0] for row in db.execute("SELECT table_name FROM duckdb_tables()").fetchall()}


def done(db: duckdb.DuckDBPyConnection) -> list[int]:
    return [row[0] for row in db.execute("SELECT number FROM migrations ORDER BY rowid").fetchall()]


def test_migrations_are_numbered_without_a_gap() -> None:
    assert [number for number, _ in available()] == list(range(1, len(available()) + 1))


def test_an_empty_file_gets_every_table(db: duckdb.DuckDBPyConnection) -> None:
    migrate(db, 0)
    assert {"memories", "links", "transitions", "applied", "tombstones", "shard_info", "migrations"} <= names(db)
    assert done(db) == [number for number, _ in available()]


def test_migrating_again_changes_nothing(db: duckdb.DuckDBPyConnection) -> None:
    migrate(db, 0)
    db.execute("INSERT INTO shard_info VALUES ('model', 'toy')")
    migrate(db, 0)
    assert db.execute("SELECT * FROM shard_info WHERE key <> 'identity' ORDER BY key").fetchall() == [
        ("changes", "0"),
        ("model", "toy"),
        ("next_seq", "1"),
        ("position", "0"),
    ]
    assert done(db) == [number for number, _ in available()]


def test_a_file_of_a_newer_version_is_refused(db: duckdb.DuckDBPyConnection) -> None:
    migrate(db, 3)
    db.execute("INSERT INTO migrations VALUES (999, 'm999_later')")
    with pytest.raises(ShardError, match=r"shard 3: .*newer Siltstone \(schema 999\)") as caught:
        migrate(db, 3)
    assert caught.value.partition == 3


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Migrations of the test's own."""
    monkeypatch.setattr(migrations, "SQL", tmp_path)
    (tmp_path / "m001_first.sql").write_text("CREATE TABLE first (a INTEGER);", encoding="utf-8")
    return tmp_path


def test_only_what_is_new_is_run(db: duckdb.DuckDBPyConnection, folder: Path) -> None:
    migrate(db, 0)
    (folder / "m002_second.sql").write_text("ALTER TABLE first ADD COLUMN b INTEGER;", encoding="utf-8")
    migrate(db, 0)
    assert db.execute("SELECT a, b FROM first").fetchall() == []
    assert done(db) == [1, 2]


def test_a_migration_that_fails_leaves_nothing_behind(db: duckdb.DuckDBPyConnection, folder: Path) -> None:
    """Those before it stay; corrected, it is run at the next opening."""
    second = folder / "m002_second.sql"
    second.write_text("CREATE TABLE half (a INTEGER); INSERT INTO nowhere VALUES (1);", encoding="utf-8")
    with pytest.raises(duckdb.CatalogException):
        migrate(db, 0)
    assert (done(db), "half" in names(db)) == ([1], False)
    second.write_text("CREATE TABLE half (a INTEGER);", encoding="utf-8")
    migrate(db, 0)
    assert (done(db), "half" in names(db)) == ([1, 2], True)


def test_other_sql_files_are_no_migrations(folder: Path) -> None:
    (folder / "lifecycle.sql").write_text("nothing", encoding="utf-8")
    assert available() == [(1, "m001_first")]


def test_a_transaction_is_rolled_back_when_its_block_raises(db: duckdb.DuckDBPyConnection) -> None:
    db.execute("CREATE TABLE t (a INTEGER)")
    with transaction(db):
        db.execute("INSERT INTO t VALUES (1)")
    with pytest.raises(KeyboardInterrupt), transaction(db):  # noqa: PT012
        db.execute("INSERT INTO t VALUES (2)")
        raise KeyboardInterrupt
    assert db.execute("SELECT a FROM t").fetchall() == [(1,)]
