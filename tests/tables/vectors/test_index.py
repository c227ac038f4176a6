"""The FAISS index of a shard: cells are users, cosines are exact."""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from tables.vectors.cells import NewCells
from tables.vectors.index import CELLS, below, cell_of, earlier_copies
from tests.support.examples import examples
from tests.support.making import axis, leaning

DIMENSION = 8


def numbers(*seqs: int) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.array(seqs, np.int64)


def filled(*rows: tuple[int, int, np.ndarray[Any, np.dtype[np.float32]]]) -> NewCells:
    """An index of (seq, cell, vector)."""
    index = NewCells(DIMENSION)
    index.add(
        numbers(*(row[0] for row in rows)), numbers(*(row[1] for row in rows)), np.stack([row[2] for row in rows])
    )
    return index


def test_cosines_are_those_worked_out_by_hand() -> None:
    """1 with itself, 0 across, 0.6 on the 3-4-5 triangle, -1 with the opposite."""
    index = filled((1, 5, axis(0)), (2, 5, axis(1)), (3, 5, leaning(0, 1, 0.6)), (4, 5, -axis(0)))
    found = index.similarities(5, axis(0), numbers(1, 2, 3, 4))
    assert found == pytest.approx([1, 0, 0.6, -1], abs=1e-6)
    assert found.dtype == np.float32


def test_cosines_come_in_the_order_of_the_numbers_asked_for() -> None:
    index = filled((1, 5, axis(0)), (2, 5, axis(1)), (3, 5, leaning(0, 1, 0.6)))
    assert index.similarities(5, axis(0), numbers(3, 1, 2)) == pytest.approx([0.6, 1, 0], abs=1e-6)


def test_a_number_that_is_not_there_has_cosine_0() -> None:
    index = filled((1, 5, axis(0)))
    assert index.similarities(5, axis(0), numbers(7, 1)).tolist() == [0, 1]


def test_asking_for_nothing_gives_nothing() -> None:
    assert filled((1, 5, axis(0))).similarities(5, axis(0), numbers()).tolist() == []


def test_another_cell_is_not_looked_into() -> None:
    index = filled((1, 5, axis(0)), (2, 6, axis(0)))
    assert index.similarities(5, axis(0), numbers(1, 2)).tolist() == [1, 0]


def sharing_a_cell() -> tuple[str, str]:
    """Two users whose ids fall into one cell."""
    seen: dict[int, str] = {}
    for number in count():
        user = f"user-{number}"
        other = seen.setdefault(cell_of(user), user)
        if other != user:
            return other, user
    raise AssertionError


def test_users_who_share_a_cell_see_their_own_vectors_alone() -> None:
    ann, bob = sharing_a_cell()
    cell = cell_of(ann)
    assert cell == cell_of(bob)
    index = filled((1, cell, axis(0)), (2, cell, axis(0)), (3, cell, axis(1)))
    assert index.similarities(cell, axis(0), numbers(1, 3)).tolist() == [1, 0]  # Ann's; 2 is Bob's


def test_a_users_cell_never_changes() -> None:
    """It is written into index files."""
    assert (cell_of("u"), cell_of("小明")) == (61572, 28450)
    assert all(0 <= cell_of(str(number)) < CELLS for number in range(1000))


def test_removed_vectors_are_gone() -> None:
    index = filled((1, 5, axis(0)), (2, 5, axis(1)), (3, 6, axis(0)))
    index.remove(numbers(1, 3, 99))
    assert (len(index), index.seqs().tolist()) == (1, [2])
    assert index.similarities(5, axis(0), numbers(1, 2)).tolist() == [0, 0]


def test_removing_nothing_changes_nothing() -> None:
    index = filled((1, 5, axis(0)))
    index.remove(numbers())
    assert len(index) == 1


def test_numbers_are_given_ascending_over_all_cells() -> None:
    assert filled((9, 1, axis(0)), (2, 7, axis(0)), (5, 4, axis(0))).seqs().tolist() == [2, 5, 9]
    assert NewCells(DIMENSION).seqs().tolist() == []


@pytest.mark.parametrize("shape", [(1, DIMENSION + 1), (2, DIMENSION), (DIMENSION,)])
def test_vectors_that_do_not_fit_are_refused(shape: tuple[int, ...]) -> None:
    index = NewCells(DIMENSION)
    with pytest.raises(ValueError, match="dimension 8"):
        index.add(numbers(1), numbers(5), np.zeros(shape, np.float32))
    assert len(index) == 0


def test_adding_nothing_changes_nothing() -> None:
    index = NewCells(DIMENSION)
    index.add(numbers(), numbers(), np.zeros((0, DIMENSION), np.float32))
    assert len(index) == 0


@examples(30)
@given(
    npst.arrays(np.float32, st.tuples(st.integers(1, 20), st.just(DIMENSION)), elements=st.floats(-1, 1, width=32)),
    st.data(),
)
def test_similarities_are_numpys_inner_products(
    vectors: np.ndarray[Any, np.dtype[np.float32]], data: st.DataObject
) -> None:
    """Exact, whichever of the vectors are asked for, and in whichever order."""
    index = NewCells(DIMENSION)
    index.add(np.arange(len(vectors)), np.full(len(vectors), 3), vectors)
    asked = data.draw(st.lists(st.integers(0, len(vectors) - 1), unique=True, min_size=1))
    query = vectors[0]
    found = index.similarities(3, query, numbers(*asked))
    assert found == pytest.approx(vectors[asked] @ query, abs=1e-5)


@pytest.mark.parametrize("rows", [0, 1, 40, 700])
def test_earlier_copies_are_those_that_a_loop_finds(rows: int) -> None:
    """More rows than one block of the product holds."""
    chance = np.random.default_rng(rows)
    few = chance.standard_normal((7, 8)).astype(np.float32)
    spread = few[chance.integers(0, 7, rows)] + chance.normal(0, 0.05, (rows, 8))
    vectors = (spread / np.maximum(np.linalg.norm(spread, axis=1, keepdims=True), 1e-12)).astype(np.float32)
    cosines = vectors @ vectors.T
    expected = {row: [i for i in range(row) if cosines[row, i] >= 0.95] for row in range(rows)}
    found = {row: list(copies) for row, copies in earlier_copies(vectors, 0.95).items()}
    assert found == {row: copies for row, copies in expected.items() if copies}


@pytest.mark.parametrize("cosine", [0.95, 0.5, 0.9, 1 / 3, 1.0])
def test_below_is_the_last_number_that_is_less(cosine: float) -> None:
    """In single precision: a cosine that is exactly the border is near enough, the next smaller one is not."""
    border = np.float32(cosine)
    if float(border) < cosine:
        border = np.nextafter(border, np.float32(2))
    assert float(border) > below(cosine)
    assert float(np.nextafter(border, np.float32(-2))) <= below(cosine) < cosine
