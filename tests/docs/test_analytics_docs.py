"""docs/analytics.md does not lie: its queries run and answer, and it names every table, view and column."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from schemas.lifecycle import DAY_MS
from schemas.settings import AnalyticsSettings, LifecycleSettings
from tables.catalog.catalog import Catalog, NewLink
from tables.catalog.migrations import statement
from tests.support.making import START
from tests.tables.analysts.test_copy import copy_of, shard
from tests.tables.catalog.test_catalog import adding, memory

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


def test_every_table_and_view_is_described_with_its_columns(copy: duckdb.DuckDBPyConnection) -> None:
    described = dict(re.findall(r"^\| `(\w+)(?:\(\w+(?:, \w+)*\))?` \| (.*) \|$", PAGE, re.MULTILINE))
    rows = copy.execute("SELECT table_name, column_name FROM duckdb_columns() WHERE NOT internal").fetchall()
    assert {table for table, _ in rows} | {"archive", "scores_at", "states_between"} == set(described)
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
