"""No feature makes a message, a promotion or a search dearer unnoticed: calls, statements and bytes are counted."""

from __future__ import annotations

import threading
import tomllib

import duckdb
import pytest

from streams.language.estimator import estimate
from tests.support.budget import MEANING, NOTE, PARTS, Figures, complaints, document, measured, noted, tolerance
from tests.support.calls import Calls, Statements


@pytest.mark.parametrize("part", PARTS)
def test_it_costs_what_the_budget_says(part: str) -> None:
    """Not 2 % more, and not 10 % less either: then the budget is to be lowered."""
    told = complaints(part, measured(part), noted()[part], tolerance())
    assert not told, "\n".join([*told, f"if it is worth that: {NOTE}, and say in the commit what for"])


def test_every_figure_has_its_meaning_in_the_file() -> None:
    """The file is what `--write` makes of its own numbers."""
    assert tomllib.loads(document(noted())) == noted()
    assert {part: list(figures) for part, figures in noted().items()} == {p: list(m) for p, m in MEANING.items()}


def search_costs(calls_warm: float) -> Figures:
    return dict.fromkeys(MEANING["search"], 7.0) | {"calls_warm": calls_warm}


@pytest.mark.parametrize(("now", "told"), [(102.0, 0), (103.0, 1), (90.0, 0), (89.0, 1), (0.0, 1)])
def test_what_is_dearer_or_much_cheaper_than_noted_is_told(now: float, told: int) -> None:
    found = complaints("search", search_costs(now), search_costs(100.0), 0.02)
    assert [line.startswith("search.calls_warm is ") for line in found] == [True] * told


def counted(text: str) -> int:
    calls = Calls()
    with calls.watched(), calls.counted():
        estimate(text, "")
    return calls.total


def test_the_same_work_is_as_many_calls_each_time() -> None:
    """But for the first time: what is looked up is remembered."""
    text = "I love chess and live in Oslo"
    first, *later = (counted(text) for _ in range(4))
    assert first >= later[0] > 10
    assert len(set(later)) == 1


def test_what_tests_and_libraries_do_among_themselves_is_no_call_of_ours() -> None:
    calls = Calls()
    with calls.watched(), calls.counted():
        sorted([3, 1, 2], key=lambda number: -number)
        threading.Lock()
    assert calls.total == 0


def test_threads_that_begin_meanwhile_count() -> None:
    calls = Calls()
    with calls.watched():
        thread = threading.Thread(target=estimate, args=("I love chess", ""))
        with calls.counted():
            thread.start()
            thread.join()
    assert calls.total > 10


def test_a_statement_for_many_rows_is_one_for_each() -> None:
    statements = Statements()
    with statements.counted():
        connection = duckdb.connect()
        connection.execute("CREATE TABLE t (n INTEGER)")
        connection.executemany("INSERT INTO t VALUES (?)", [[n] for n in range(5)])
        assert connection.sql("SELECT count(*) FROM t").fetchall() == [(5,)]
        connection.close()
    assert statements.total == 7
