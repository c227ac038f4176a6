"""A catalog's file belongs to one process, also in the moment in which it is replaced by a copy."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from schemas.errors import ShardLocked
from tables.memories.catalog.catalog_file import CatalogFile
from tests.support.locks import held_elsewhere


def test_who_replaces_a_file_has_it_for_himself(tmp_path: Path) -> None:
    """Though DuckDB has closed it for a moment: another process waits, as for one that has it open."""
    path = tmp_path / "3" / "catalog.duckdb"
    CatalogFile(path, 3).close()
    with held_elsewhere(tmp_path / "3.lock"), pytest.raises(ShardLocked, match="another process has"):
        CatalogFile(path, 3)
    CatalogFile(path, 3).close()


def test_a_copy_has_the_rows_in_their_order_with_keys_and_types(tmp_path: Path) -> None:
    """The connection is another one afterwards, and what it was told before is in the file."""
    file = CatalogFile(tmp_path / "it's.duckdb", 0)
    file.db.execute("CREATE TABLE shard_info (key VARCHAR PRIMARY KEY, value VARCHAR NOT NULL)")
    file.db.execute("CREATE TABLE t (vector FLOAT[2] NOT NULL, list VARCHAR[], meta JSON, moment TIMESTAMP)")
    file.db.execute(
        "INSERT INTO t SELECT [i, -i], [i], json_object('a', i), make_timestamp_ms(i) FROM range(3000) numbers(i)"
    )
    file.db.execute("DELETE FROM t WHERE vector[1] % 3 = 0")
    before, rows = file.db, file.db.execute("FROM t").fetchall()
    file.rewrite()
    assert file.db is not before
    assert file.db.execute("FROM t").fetchall() == rows
    assert [str(kind) for kind in file.db.sql("FROM t").types] == ["FLOAT[2]", "VARCHAR[]", "JSON", "TIMESTAMP"]
    file.db.execute("INSERT INTO shard_info VALUES ('a', '1')")
    with pytest.raises(duckdb.ConstraintException):
        file.db.execute("INSERT INTO shard_info VALUES ('a', '2')")
    file.close()


def test_what_a_crash_left_goes_at_the_next_opening(tmp_path: Path) -> None:
    """A half-made copy, and what memory had no room for."""
    (tmp_path / "catalog.duckdb.tmp").mkdir()
    for name in ("catalog.fresh", "catalog.fresh.wal", "catalog.duckdb.tmp/spilled.block"):
        (tmp_path / name).write_bytes(b"secret")
    CatalogFile(tmp_path / "catalog.duckdb", 0).close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["catalog.duckdb"]


def in_use(file: CatalogFile) -> int:
    """Bytes that DuckDB has in memory."""
    ((used,),) = file.db.execute("SELECT sum(memory_usage_bytes) FROM duckdb_memory()").fetchall()
    return int(used)


@pytest.mark.slow
def test_a_file_at_rest_gives_back_what_a_scan_has_read_and_what_changed(tmp_path: Path) -> None:
    """Changes by a checkpoint; its share of the memory is what it was."""
    file = CatalogFile(tmp_path / "catalog.duckdb", 0, 256 << 20)
    try:
        file.db.execute("CREATE TABLE t AS SELECT range AS n, hash(range) AS h FROM range(5_000_000)")
        file.db.execute("CHECKPOINT")
        file.db.execute("SELECT max(n), max(h) FROM t").fetchall()
        file.db.execute("UPDATE t SET h = h + 1 WHERE n % 2 = 0")
        assert in_use(file) > 32 << 20
        assert (tmp_path / "catalog.duckdb.wal").stat().st_size > 32 << 20
        limit = file.db.execute("SELECT current_setting('memory_limit')").fetchall()
        file.rest()
        assert in_use(file) < 18 << 20
        assert file.db.execute("SELECT current_setting('memory_limit')").fetchall() == limit
        assert file.db.execute("SELECT count(*), sum(n) FROM t").fetchall() == [(5_000_000, 12_499_997_500_000)]
    finally:
        file.close()


@pytest.mark.slow
def test_a_file_at_rest_makes_no_checkpoint_where_it_was_put_off(tmp_path: Path) -> None:
    """Somebody copies the file then: it has to stay as it is."""
    file = CatalogFile(tmp_path / "catalog.duckdb", 0, 256 << 20)
    try:
        file.db.execute("CREATE TABLE t AS SELECT range AS n, hash(range) AS h FROM range(5_000_000)")
        file.db.execute("CHECKPOINT")
        file.db.execute("SET checkpoint_threshold = '1000TB'")
        before = file.path.read_bytes()
        file.db.execute("UPDATE t SET h = h + 1 WHERE n % 2 = 0")
        log = tmp_path / "catalog.duckdb.wal"
        assert log.stat().st_size > 32 << 20
        file.rest()
        assert file.path.read_bytes() == before
        assert log.stat().st_size > 32 << 20
    finally:
        file.close()
