"""Shards in their own process: the time to open them, their memory, and how fast they answer.

The process opens them as a worker does, one after the other, each with the smallest memory that a worker gives to a
shard's database. Then it searches for users, first with no pages of the files in memory, then again.
"""

from __future__ import annotations

import gc
import itertools
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.state.filling import DIMENSION, MODEL, SEED, unit_vectors, users_of
from benchmarks.state.process_memory import anonymous_bytes, bytes_on_disk, drop_from_page_cache, settled
from benchmarks.store import Siltstone
from schemas.settings import LifecycleSettings, LongTermSettings
from streams.doors.cli.process import COLLECT_AFTER
from streams.runtime.memory_shares import LEAST_FOR_A_SHARD
from tables.memories.shard import Shard
from tables.search.recent import Recent
from tables.vectors.index import Vectors

USERS_ASKED: Final = 200
AGAIN: Final = 3
#: Users who are searched for before memory is measured a second time.
USERS_SEEN: Final = 1_000

Asked = tuple[Siltstone, str, Vectors]


def measure(folder: Path, memories: int, partitions: int) -> dict[str, float]:
    """The figures of the shards in this folder. The memory of as many empty shards, opened first, is subtracted."""
    gc.set_threshold(*COLLECT_AFTER)
    empty = _opened(folder.parent / "empty-shards", partitions)
    before = settled(anonymous_bytes)
    for each in empty:
        each.shard.close()
    drop_from_page_cache(folder)
    started = time.monotonic()
    stores = _opened(folder, partitions)
    figures = {"open_s": round(time.monotonic() - started, 3)}
    held = sum(each.shard.count() for each in stores)
    if held != memories:
        raise ValueError(f"the shards hold {held} memories, not {memories}")
    figures["anon_bytes_per_memory"] = _a_memory(before, memories)
    asked = _questions(stores, memories, partitions)
    figures |= _answers(asked)
    for store, user, vector in itertools.islice(asked, USERS_SEEN):
        store.hybrid(user, vector, "which table did I book?")
    figures["anon_bytes_per_memory_searched"] = _a_memory(before, memories)
    figures["disk_bytes_per_memory"] = round(bytes_on_disk(folder) / memories)
    started = time.monotonic()
    for each in stores:
        each.shard.close()
    figures["close_s"] = round(time.monotonic() - started, 3)
    return figures


def _opened(folder: Path, partitions: int) -> list[Siltstone]:
    recent, lifecycle = Recent(), LifecycleSettings()
    return [
        Siltstone(
            folder,
            Shard(
                *(partition, folder / str(partition), MODEL, DIMENSION, LongTermSettings(), lifecycle),
                recent,
                LEAST_FOR_A_SHARD,
            ),
            DIMENSION,
        )
        for partition in range(partitions)
    ]


def _a_memory(before: int, memories: int) -> float:
    return round((settled(anonymous_bytes) - before) / memories, 1)


def _questions(stores: Sequence[Siltstone], memories: int, partitions: int) -> list[Asked]:
    """Users of all shards, in random order."""
    chance = np.random.default_rng(SEED + 1)
    users = [(stores[p], user) for p, names in enumerate(users_of(memories, partitions)) for user in names]
    chosen = chance.permutation(len(users))[: 2 * USERS_ASKED + USERS_SEEN]
    vectors = unit_vectors(chance, len(chosen))
    return [(*users[place], vector) for place, vector in zip(chosen.tolist(), vectors, strict=True)]


def _answers(asked: Sequence[Asked]) -> dict[str, float]:
    """p50 and p99 of searches by vectors alone and by words as well: of each user's first one, and of later ones."""

    def cosines(store: Siltstone, user: str, vector: Vectors) -> Any:
        shard = store.shard
        return shard.cosines(user, vector, shard.rows.candidates(shard.held(user)))

    def hybrid(store: Siltstone, user: str, vector: Vectors) -> Any:
        if not store.hybrid(user, vector, "which table did I book at the harbour?"):
            raise ValueError(f"nothing was found for {user}")

    by_both, by_vector = asked[:USERS_ASKED], asked[USERS_ASKED : 2 * USERS_ASKED] or asked
    figures = dict[str, float]()
    for name, work, given in (
        ("search_first", hybrid, by_both),
        ("search", hybrid, [*by_both] * AGAIN),
        ("vectors_first", cosines, by_vector),
        ("vectors", cosines, [*by_vector] * AGAIN),
    ):
        p50, p99 = np.percentile([_seconds(work, each) for each in given], [50, 99]).tolist()
        figures |= {f"{name}_p50_ms": round(p50 * 1e3, 3), f"{name}_p99_ms": round(p99 * 1e3, 3)}
    return {
        **figures,
        "search_first_ms": figures["search_first_p50_ms"],
        "search_warm_us": round(figures["search_p50_ms"] * 1e3),
    }


def _seconds(work: Callable[[Siltstone, str, Vectors], Any], asked: Asked) -> float:
    started = time.perf_counter()
    work(*asked)
    return time.perf_counter() - started
