"""The rows of `shard_info`, by key and type."""

from __future__ import annotations

import uuid
from pathlib import Path

import duckdb
import pytest

from tables.database.database import connect
from tables.database.migrations import migrate
from tables.database.shard_info import InfoTable, ShardInfo, read_info, whole_from

SHARD = uuid.UUID(int=7)
WHOLE = ShardInfo(
    identity=SHARD,
    model="7",
    dimension=384,
    next_model="null",
    next_dimension=512,
    next_seq=2**62,
    position=0,
    changes=1,
    index=3,
    index_before=0,
    search_rows=4,
    to_erase=True,
    transitions_from=5,
    history_from=6,
    ratings_from=0,
)


def opened(path: Path | None = None) -> duckdb.DuckDBPyConnection:
    db = connect(path)
    migrate(db, 0)
    return db


def texts(db: duckdb.DuckDBPyConnection) -> dict[str, str]:
    return dict(db.execute("SELECT key, value FROM shard_info").fetchall())


def test_a_new_catalog_has_what_its_migrations_wrote() -> None:
    with opened() as db:
        info = read_info(db)
    assert info.identity is not None
    assert info == ShardInfo(identity=info.identity, next_seq=1, position=0, changes=0)


def test_what_is_written_is_read() -> None:
    with opened() as db:
        InfoTable(db).write(WHOLE)
        assert read_info(db) == WHOLE


def test_values_are_the_texts_that_older_versions_wrote() -> None:
    with opened() as db:
        InfoTable(db).write(WHOLE)
        assert texts(db) == {
            "identity": str(SHARD),
            "model": "7",
            "dimension": "384",
            "next_model": "null",
            "next_dimension": "512",
            "next_seq": str(2**62),
            "position": "0",
            "changes": "1",
            "index": "3",
            "index_before": "0",
            "search_rows": "4",
            "to_erase": "1",
            "transitions_from": "5",
            "history_from": "6",
            "ratings_from": "0",
        }


def test_what_is_not_said_stays_and_what_is_dropped_has_no_row() -> None:
    with opened() as db:
        table = InfoTable(db)
        table.write(WHOLE)
        table.write(ShardInfo(position=9, to_erase=False))
        table.drop("next_model", "next_dimension")
        found = read_info(db)
        assert (found.position, found.to_erase, found.model, found.next_model) == (9, False, "7", None)
        assert "next_dimension" not in texts(db)
        assert texts(db)["to_erase"] == "0"


def test_a_write_that_is_rolled_back_leaves_all_as_it_was() -> None:
    with opened() as db:
        table, before = InfoTable(db), texts(db)
        db.execute("BEGIN TRANSACTION")
        table.write(ShardInfo(position=9, index=1))
        db.execute("ROLLBACK")
        assert texts(db) == before


def test_rows_of_other_versions_are_passed_over_and_kept() -> None:
    with opened() as db:
        db.execute("INSERT INTO shard_info VALUES ('of_tomorrow', 'x')")
        InfoTable(db).write(ShardInfo(position=9))
        assert read_info(db).position == 9
        assert texts(db)["of_tomorrow"] == "x"


def test_a_key_that_there_is_not_cannot_be_dropped() -> None:
    with opened() as db, pytest.raises(AssertionError):
        InfoTable(db).drop("positon")


def test_a_catalog_that_is_attached_is_read_by_its_name(tmp_path: Path) -> None:
    with opened(tmp_path / "catalog.duckdb") as db:
        InfoTable(db).write(whole_from("history", 8))
    with connect() as db:
        db.execute(f"ATTACH '{tmp_path / 'catalog.duckdb'}' AS live (READ_ONLY)")
        info = read_info(db, "live")
    assert [info.whole_from(table) for table in ("transitions", "history", "ratings")] == [0, 8, 0]
