"""What a shard asks of a vector index holds for each: FAISS's segments, the toy, and products over a mapped file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.events import LongTermEvent
from schemas.settings import LifecycleSettings, LongTermSettings
from tables.memories.shard import Shard
from tables.vectors.index import NewIndex, Seqs, VectorIndex, Vectors
from tables.vectors.segmented import SegmentedIndex
from tables.vectors.toy import ToyIndex
from tests.support.examples import examples
from tests.support.making import START, axis, leaning
from tests.support.products import FiledProducts
from tests.tables.commands import COMMANDS, WHO, vectors_of

D = 8
INDEXES = pytest.mark.parametrize("new", [SegmentedIndex, ToyIndex, FiledProducts])


def numbers(*seqs: int) -> Seqs:
    return np.array(seqs, np.int64)


def stack(*vectors: npt.NDArray[np.floating]) -> Vectors:
    return np.stack(vectors).astype(np.float32)


@pytest.fixture
def index(new: NewIndex, tmp_path: Path) -> Iterator[VectorIndex]:
    """Two cells: 4 and 2 in the first, 9 in the second."""
    made = new(tmp_path, D, "an index")
    made.add(numbers(4, 9, 2), numbers(1, 7, 1), stack(axis(0), axis(1), leaning(0, 1, 0.6)))
    yield made
    made.discard()


@INDEXES
def test_cosines_are_those_of_the_given_rows_in_their_order(index: VectorIndex) -> None:
    found = index.similarities(1, axis(0), numbers(2, 5, 4))
    assert found.dtype == np.float32
    assert found.tolist() == pytest.approx([0.6, 0, 1], abs=1e-6)
    assert index.similarities(1, axis(0), numbers()).tolist() == []


@INDEXES
def test_another_cell_is_not_looked_into(index: VectorIndex) -> None:
    assert index.similarities(1, axis(1), numbers(9)).tolist() == [0]
    assert index.similarities(3, axis(1), numbers(9)).tolist() == [0]


@INDEXES
def test_near_ones_are_found_cell_by_cell(index: VectorIndex) -> None:
    queries = stack(axis(0), axis(0), axis(1), axis(5))
    assert index.near(numbers(1, 7, 7, 1), queries, 0.6) == {0: [2, 4], 2: [9]}
    assert index.near(numbers(1, 7, 7, 1), queries, 0.7) == {0: [4], 2: [9]}
    assert index.near(numbers(), np.empty((0, D), np.float32), 0.5) == {}


@INDEXES
def test_what_is_removed_is_not_there(index: VectorIndex) -> None:
    index.remove(numbers(4, 100))
    assert (len(index), index.seqs().tolist()) == (2, [2, 9])
    assert index.similarities(1, axis(0), numbers(4)).tolist() == [0]
    assert index.near(numbers(1), stack(axis(0)), 0.9) == {}
    assert (index.verify(numbers(2, 9)), index.verify(numbers(2, 4, 9))) == (True, False)


@INDEXES
def test_it_is_the_same_after_it_was_written(index: VectorIndex) -> None:
    index.flush()
    index.tidy()
    index.erase()
    assert index.seqs().tolist() == [2, 4, 9]
    assert index.bytes > 0
    index.add(numbers(11), numbers(1), stack(axis(0)))
    assert index.near(numbers(1), stack(axis(0)), 0.9) == {0: [4, 11]}


@INDEXES
def test_many_are_added_at_once(new: NewIndex, tmp_path: Path) -> None:
    index, vectors, told = new(tmp_path, D, "an index"), stack(*(axis(n % D) for n in range(50))), list[int]()
    index.fill(np.arange(50), np.arange(50) % 3, lambda places: vectors[places], told.append)
    assert (len(index), told[-1]) == (50, 50)
    assert index.similarities(1, axis(1), numbers(1, 25)).tolist() == [1, 1]
    index.discard()


@INDEXES
def test_vectors_that_do_not_fit_are_refused(new: NewIndex, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="dimension 8"):
        new(tmp_path, D, "an index").add(numbers(1), numbers(1), np.zeros((1, 9), np.float32))


@pytest.mark.slow
@examples(15)
@given(events=st.lists(COMMANDS, min_size=5, max_size=25), cuts=st.lists(st.integers(1, 6), min_size=25, max_size=25))
def test_a_shard_is_the_same_with_each_of_them(
    tmp_path_factory: pytest.TempPathFactory, events: list[LongTermEvent], cuts: list[int]
) -> None:
    """Also after an opening, and as to which memories are near-copies."""
    folder, vectors = tmp_path_factory.mktemp("shards"), vectors_of(events)
    held = []
    for new in (SegmentedIndex, ToyIndex, FiledProducts):
        shard = opened(folder / new.__name__, new)
        start = 0
        for cut in cuts:
            shard.apply(events[start : start + cut], vectors, START)
            start += cut
        shard.close()
        shard = opened(folder / new.__name__, new)
        assert shard.in_step()
        memories = [shard.memories_of(user) for user in WHO]
        cosines = [
            [round(float(one), 4) for one in shard.similarities(user, axis(place), mine)]
            for user, mine in zip(WHO, memories, strict=True)
            for place in range(D)
        ]
        held.append((memories, cosines))
        shard.close()
    assert held[0] == held[1] == held[2]


def opened(folder: Path, new: NewIndex) -> Shard:
    return Shard(0, folder, "toy", D, LongTermSettings(), LifecycleSettings(), new_index=new)
