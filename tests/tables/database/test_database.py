"""A database takes no more memory than it was given, and leaves nothing where the process was started."""

from __future__ import annotations

import ast
from pathlib import Path

import duckdb
import pytest

from schemas.settings import LifecycleSettings, LongTermSettings
from tables.database.database import connect, limit_memory
from tables.memories.shard import Shard
from tests.support.died import died

ROOT = Path(__file__).parents[3]


def setting(db: duckdb.DuckDBPyConnection, name: str) -> str:
    ((value,),) = db.execute(f"SELECT current_setting('{name}')").fetchall()
    return str(value)


def test_a_database_has_one_thread_and_the_memory_that_it_is_given(tmp_path: Path) -> None:
    with connect(tmp_path / "a.duckdb", memory=100 << 20) as db:
        assert (setting(db, "threads"), setting(db, "memory_limit")) == ("1", "100.0 MiB")
        limit_memory(db, 200 << 20)
        assert setting(db, "memory_limit") == "200.0 MiB"


def test_what_needs_more_fails_in_memory_and_goes_beside_the_file_of_one_that_has_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DuckDB would write what users said into the folder in which the process was started."""
    monkeypatch.chdir(tmp_path)
    large = "SELECT max(b) FROM (SELECT repeat('x', 1000) || range AS b FROM range(60_000) ORDER BY b)"
    with connect(memory=16 << 20) as db, pytest.raises(duckdb.OutOfMemoryException):
        db.execute(large).fetchall()
    assert list(tmp_path.iterdir()) == []
    with connect(tmp_path / "a.duckdb", memory=16 << 20) as db:
        assert setting(db, "temp_directory") == str(tmp_path / "a.duckdb.tmp")


@pytest.mark.slow
def test_every_database_is_opened_with_a_bound() -> None:
    """Nobody calls `duckdb.connect` but the room that gives the bound."""
    found = {
        path.relative_to(ROOT).as_posix()
        for folder in ("schemas", "tables", "streams")
        for path in (ROOT / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and ast.unparse(node) == "duckdb.connect"
    }
    assert found == {"tables/database/database.py"}


def test_a_shard_keeps_its_share_when_its_catalog_is_rewritten(tmp_path: Path) -> None:
    shard = Shard(0, tmp_path, "toy", 8, LongTermSettings(), LifecycleSettings(), memory=300 << 20)
    assert setting(shard._catalog._db, "memory_limit") == "300.0 MiB"
    shard.limit_memory(400 << 20)
    shard._catalog._file.rewrite()
    assert setting(shard._catalog._file.db, "memory_limit") == "400.0 MiB"
    died(shard)
