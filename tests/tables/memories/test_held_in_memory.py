"""What an open shard has in memory is a small part of what it holds. Bytes are counted, not what the system sees."""

from __future__ import annotations

import gc
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from schemas.settings import LifecycleSettings, LongTermSettings
from tables.memories.shard import Shard
from tables.vectors.cells import faiss
from tests.support.making import START, promotion

MEMORIES, DIMENSION = 6_000, 256
#: What benchmarks/scale.py has as its bar, of which what numpy and Python have is a part. A vector has 1,024.
BYTES_A_MEMORY = 120


def opened(folder: Path) -> Shard:
    return Shard(0, folder, "toy", DIMENSION, LongTermSettings(), LifecycleSettings())


def fill(shard: Shard, start: int, stop: int) -> None:
    """So many memories of users who have 60 each, none like another."""
    chance = np.random.default_rng(start)
    for first in range(start, stop, 1_000):
        events = [
            promotion("", str(number), user=f"u{number % 100}") for number in range(first, min(first + 1_000, stop))
        ]
        vectors = chance.standard_normal((len(events), DIMENSION), np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        shard.apply(events, {event.event_id: row for event, row in zip(events, vectors, strict=True)}, START)


def vectors_in_memory() -> int:
    """Of all indexes of FAISS that there are: those whose lists are not in a file that is mapped."""
    gc.collect()
    of_each: dict[int, int] = {}
    for found in gc.get_objects():
        if isinstance(found, faiss.IndexIVF):
            lists: Any = faiss.downcast_InvertedLists(found.invlists)
            if not isinstance(lists, faiss.OnDiskInvertedLists):
                of_each[int(found.this)] = found.ntotal
        elif isinstance(found, faiss.IndexFlat):
            of_each[int(found.this)] = found.ntotal
    return sum(of_each.values())


def held_by_opening(folder: Path) -> int:
    """Bytes that Python and numpy hold of a shard once it is open."""
    gc.collect()
    tracemalloc.start()
    try:
        shard = opened(folder)
        gc.collect()
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    shard.close()
    return held


@pytest.mark.slow
def test_no_vector_of_a_shard_that_was_closed_is_in_memory_when_it_is_opened(tmp_path: Path) -> None:
    before = vectors_in_memory()
    shard = opened(tmp_path / "0")
    fill(shard, 0, MEMORIES)
    shard.close()
    shard = opened(tmp_path / "0")
    assert (shard.count(), vectors_in_memory() - before) == (MEMORIES, 0)
    fill(shard, MEMORIES, MEMORIES + 10)
    assert (shard.count(), vectors_in_memory() - before) == (MEMORIES + 10, 10)
    shard.close()


@pytest.mark.slow
def test_what_is_held_of_each_memory_is_a_fraction_of_its_vector(tmp_path: Path) -> None:
    for name, memories in (("few", 1_000), ("many", MEMORIES)):
        shard = opened(tmp_path / name)
        fill(shard, 0, memories)
        shard.close()
    held_by_opening(tmp_path / "few")  # what is made once stays
    few, many = held_by_opening(tmp_path / "few"), held_by_opening(tmp_path / "many")
    assert (many - few) / (MEMORIES - 1_000) < BYTES_A_MEMORY
