"""docs/analytics.md does not lie: its queries run and answer, and it names every table, view and column."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from schemas.lifecycle import DAY_MS
from schemas.settings import AnalyticsSettings, LifecycleSettings
from tables.database.migrations import statement
from tables.memories.catalog.catalog import Catalog
from tables.memories.catalog.changes import NewLink
from tests.support.making import START
from tests.tables.analysts.test_copy import copy_of, shard
from tests.tables.memories.catalog.test_catalog import adding, memory

PAGE = (Path(__file__).parents[2] / "docs" / "analytics.md").read_text(encoding="utf-8")
QUERIES = re.findall(r"([^\n]+\?)\n\n```sql\n(.*?)```", PAGE, re.DOTALL)
LIFECYCLE = LifecycleSettings()


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """Forty memories of two users, one often used, one never old, some linked, after sixty days of ageing."""
    data = tmp_path_factory.mktemp("data")
    zero, one = shard(data, 0), shard(data, 1)
    aged(zero, "ann", 0)
    aged(one, "bo", 100)
    path = copy_of(data, zero, one, at=START + 60 * DAY_MS).path
    with duckdb.connect(str(path), read_only=True) as db:
        yield db
    zero.close()
    one.close()


def aged(catalog: Catalog, user: str, first: int) -> None:
    promoted = {"promotion": {"reason": "forced"}}
    kept = [memory(first + n, user_id=user, importance=75.0 + n, meta=promoted) for n in range(20)]
    kept.append(memory(first + 20, user_id=user, importance=1.0, kind="remember"))
    kept.append(memory(first + 21, user_id=user, last_accessed=START + 50 * DAY_MS, access_count=9))
    changes = adding(*kept)
    changes.links = [NewLink(user, kept[1].id, kept[0].id, "related", 0.5, START)]
    catalog.write(changes, START)
    for days in (20, 0, 30, 60):
        catalog.ageing.recompute(START + days * DAY_MS, LIFECYCLE)


def test_there_are_ten_queries() -> None:
    assert (len(QUERIES), PAGE.count("```sql")) == (10, 10)


@pytest.mark.parametrize(("question", "query"), QUERIES, ids=[question for question, _ in QUERIES])
def test_a_query_answers(copy: duckdb.DuckDBPyConnection, question: str, query: str) -> None:
    """Each finds something in a store that has all that is asked about."""
    assert copy.execute(query).fetchall(), question


def _answers(db: duckdb.DuckDBPyConnection, *more: str) -> list[list[tuple[Any, ...]]]:
    return [sorted(db.execute(query).fetchall(), key=repr) for query in (*(query for _, query in QUERIES), *more)]


@pytest.mark.parametrize("zone", ["Asia/Shanghai", "America/New_York", "UTC"])
def test_a_query_answers_the_same_in_every_zone(copy: duckdb.DuckDBPyConnection, zone: str) -> None:
    """A session has that of the machine, and moments of ours have none."""
    moment = "TIMESTAMPTZ '2026-02-10 23:30:00+00'"
    with_zones = (
        "SELECT * FROM scores_at({moment})",
        "SELECT id FROM held_at({moment})",
        "SELECT id FROM speaking_of({moment} - INTERVAL 20 DAYS, {moment})",
        "SELECT * FROM states_between({moment} - INTERVAL 20 DAYS, {moment})",
        "SELECT count(*) FROM memories WHERE last_accessed > utc({moment}) - INTERVAL 10 DAYS",
        "SELECT * FROM states_over_time",
        "SELECT * FROM transition_rates",
        "SELECT utc(now()) BETWEEN get_current_timestamp() AT TIME ZONE 'UTC' - INTERVAL 1 MINUTE "
        "AND get_current_timestamp() AT TIME ZONE 'UTC' + INTERVAL 1 MINUTE",
    )
    utc = [query.format(moment="TIMESTAMP '2026-02-10 23:30:00'") for query in with_zones]
    with copy.cursor() as session:
        expected = _answers(session, *utc)
        session.execute(f"SET TimeZone = '{zone}'")
        assert _answers(session, *(query.format(moment=moment) for query in with_zones)) == expected
        assert expected[-1] == [(True,)]


READ = """
import json
print(json.dumps({
    "pandas": json.loads(memories.drop(columns="partition").to_json(orient="records", date_format="iso")),
    "polars": [{**row, "created_at": row["created_at"].isoformat()} for row in newest.to_dicts()],
}, default=str))
"""


@pytest.mark.slow
@pytest.mark.parametrize("zone", ["Asia/Shanghai", "America/New_York", "UTC"])
def test_pandas_and_polars_read_the_parquet(copy: duckdb.DuckDBPyConnection, zone: str, tmp_path: Path) -> None:
    """As the page does it: ids and metadata are texts, times are UTC."""
    ((path,),) = copy.execute("SELECT path FROM duckdb_databases() WHERE NOT internal").fetchall()
    (tmp_path / "siltstone-data").symlink_to(Path(path).parents[1])
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    command = [sys.executable, "-c", code + READ]
    environment = {**os.environ, "TZ": zone}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    read = json.loads(done.stdout)
    rows = copy.execute("SELECT id, message_ids, meta, strftime(created_at, '%xT%X') FROM memories").fetchall()
    expected = {identity: (ids, json.loads(meta), at) for identity, ids, meta, at in rows}
    assert len(read["pandas"]) == len(expected) == 44
    assert len(read["polars"]) == 10
    for row in (*read["pandas"], *read["polars"]):
        assert (row["message_ids"], json.loads(row["meta"]), row["created_at"][:19]) == expected[row["id"]]


def test_every_table_and_view_is_described_with_its_columns(copy: duckdb.DuckDBPyConnection) -> None:
    described = dict(re.findall(r"^\| `(\w+)(?:\(\w+(?:, \w+)*\))?` \| (.*) \|$", PAGE, re.MULTILINE))
    rows = copy.execute("SELECT table_name, column_name FROM duckdb_columns() WHERE NOT internal").fetchall()
    assert {table for table, _ in rows} | {"archive", "held_at", "scores_at", "speaking_of", "states_between"} == set(
        described
    )
    for table, column in rows:
        if column != "partition" and table != "scores":
            assert re.search(rf"\b{column}\b", described[table]), f"{table}.{column}"


def test_the_settings_are_the_defaults() -> None:
    defaults = AnalyticsSettings()
    assert "enabled: true " in PAGE
    assert defaults.enabled
    assert f"  seconds: {defaults.seconds:g}\n" in PAGE


@pytest.mark.parametrize("name", ["lifecycle", "states_over_time"])
def test_the_worker_and_the_copy_share_their_macros(name: str) -> None:
    """They are made permanent in the copy by leaving out a word."""
    made = re.findall(r"^CREATE .*MACRO", statement(name), re.MULTILINE)
    assert set(made) == {"CREATE OR REPLACE TEMP MACRO"}
