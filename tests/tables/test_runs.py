"""A number is found at its place, and what is not there is not found."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tables.runs import Runs
from tests.support.examples import examples


@examples(100)
@given(st.lists(st.lists(st.integers(1, 4), max_size=20), max_size=5))
def test_numbers_have_the_places_in_which_they_came(parts: list[list[int]]) -> None:
    runs, held = Runs(), list[int]()
    for steps in parts:
        added = (np.cumsum(np.array(steps, np.int64)) + runs.highest).astype(np.int64)
        runs.add(added)
        held += added.tolist()
        assert (len(runs), runs.highest) == (len(held), held[-1] if held else -1)
    asked = np.arange(-2, runs.highest + 3)
    places = {number: place for place, number in enumerate(held)}
    assert runs.places(asked).tolist() == [places[one] for one in asked.tolist() if one in places]
    assert runs.looked_up(asked)[1].tolist() == [one in places for one in asked.tolist()]
    assert runs.numbers(np.arange(len(held))).tolist() == held


def test_numbers_that_follow_each_other_take_no_memory() -> None:
    runs = Runs()
    for start in range(7, 100_007, 1_000):
        runs.add(np.arange(start, start + 1_000))
    assert runs.nbytes <= 48
    assert runs.places(np.array([7, 100_006, 100_007])).tolist() == [0, 99_999]
