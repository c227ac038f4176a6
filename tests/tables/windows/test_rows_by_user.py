"""A user's rows are found without looking at anybody else's, and are those that a walk over all would find."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tables.windows.rows_by_user import RowsByUser
from tests.support.examples import examples


def texts() -> RowsByUser[str]:
    """Rows whose user is their first letter."""
    return RowsByUser(str.encode, bytes.decode, lambda text: text[0])


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put", "put", "put", "delete", "restore", "own"]),
        st.integers(0, 1),
        st.sampled_from("abc"),
        st.integers(0, 3),
    ),
    max_size=30,
)


@given(STEPS)
@examples(200)
def test_they_are_what_a_walk_over_all_rows_finds(steps: list[tuple[str, int, str, int]]) -> None:
    rows = texts()
    for step, (what, partition, user, number) in enumerate(steps):
        key = f"{user}{number}".encode()
        match what:
            case "put":
                rows.put(partition, key, f"{user}{number}/{step}")
            case "delete":
                rows.delete(partition, key)
            case "restore":
                rows.restore(partition, [(key, f"{user}{number}/{step}".encode())])
            case _:
                rows.own(frozenset({partition}))
        for where in (0, 1):
            for one in "abc":
                walked = [row for place, _, row in rows.items() if place == where and row[0] == one]
                assert rows.of_user(where, one) == walked


def test_a_question_about_one_user_walks_over_all_rows_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, walks = texts(), 0
    walk = rows.items

    def counted() -> Iterator[Any]:
        nonlocal walks
        walks += 1
        return walk()

    monkeypatch.setattr(rows, "items", counted)
    for number in range(100):
        rows.put(0, b"%d" % number, f"{chr(97 + number % 26)}{number}")
        rows.of_user(0, "a")
    assert walks == 1
