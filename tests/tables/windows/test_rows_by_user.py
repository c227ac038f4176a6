"""A user's rows are found without looking at anybody else's, and are those that a walk over all would find."""

from __future__ import annotations

import orjson
from hypothesis import given

from tables.windows.kept_rows import MemoryRows
from tables.windows.rows_by_user import RowsByUser
from tests.support.examples import examples
from tests.tables.windows.counted import Counted
from tests.tables.windows.steps import PARTITIONS, STEPS, USERS, Step, each_step


def texts(kept: MemoryRows | None = None) -> RowsByUser[str]:
    """Rows whose user is their first letter."""
    return RowsByUser(str.encode, bytes.decode, lambda text: text[0], kept=kept)


@given(STEPS)
@examples(200)
def test_they_are_what_a_walk_over_all_rows_finds(steps: list[Step]) -> None:
    rows = texts()
    for _ in each_step(rows, steps, lambda user, place, number: f"{user}{place}/{number}", str.encode):
        for where in PARTITIONS:
            for one in USERS:
                walked = [row for place, _, row in rows.items() if place == where and row[0] == one]
                assert sorted(rows.of_user(where, one)) == sorted(walked)


def test_a_question_about_one_user_reads_no_row_of_another() -> None:
    kept = Counted()
    rows = texts(kept)
    for number in range(100):
        user = chr(97 + number % 25)
        rows.put(0, orjson.dumps((user, number)), f"{user}{number}")
    rows.written(rows.drain())
    assert len(rows.of_user(0, "a")) == kept.read == 4
