"""One bound for a worker's databases and caches, shared out among them."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import Any

import duckdb
import pytest

from schemas.errors import ShardError
from schemas.settings import LifecycleSettings, LongTermSettings
from streams.runtime.memory_shares import LEAST_FOR_A_SHARD, MemoryShares, in_units, memory_here, shares
from streams.shards.owned import OwnedShards
from tables.memories.shard import Shard
from tests.streams.shards.test_models import Toy, embedding_of
from tests.support.waiting import until

GIB = 1 << 30


@pytest.mark.parametrize("limit", [GIB, 4 * GIB, 64 * GIB])
@pytest.mark.parametrize("shards", [1, 3, 8, 100])
def test_all_parts_together_are_the_limit_or_the_least_that_works(limit: int, shards: int) -> None:
    shared = MemoryShares.of(limit)
    least = shared.caches + shared.copies + shards * LEAST_FOR_A_SHARD
    assert limit - shards < shared.needed(shards) <= limit or shared.needed(shards) == least > limit


def test_without_a_setting_it_is_half_of_what_the_machine_or_the_container_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = tmp_path / "memory.max"
    monkeypatch.setattr("streams.runtime.memory_shares._CGROUP_LIMITS", (limit, tmp_path / "not there"))
    machine = memory_here()
    limit.write_text("max\n")
    assert memory_here() == machine
    limit.write_text(f"{GIB}\n")
    assert memory_here() == GIB
    assert (shares(None).limit, shares(3 * GIB).limit) == (GIB // 2, 3 * GIB)


def test_sizes_are_told_as_people_say_them() -> None:
    assert [in_units(size) for size in (64 << 20, GIB, 3 * GIB // 2)] == ["64 MiB", "1.0 GiB", "1.5 GiB"]


def limit_of(shard: Shard) -> str:
    ((value,),) = shard._catalog._db.execute("SELECT current_setting('memory_limit')").fetchall()
    return str(value)


def owned(folder: Path, limit: int) -> OwnedShards:
    return OwnedShards(
        folder,
        LongTermSettings(),
        LifecycleSettings(),
        embedding_of(Toy("toy", 0)),
        lambda exc, where: None,
        MemoryShares.of(limit),
    )


@pytest.mark.slow
async def test_shards_share_as_they_come_and_go(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    shards = owned(tmp_path, 2 * GIB)
    try:
        seen = []
        for partitions in ({0}, {0, 1}, {1}):
            shards.own(frozenset(partitions))
            await until(lambda: shards.ready)
            seen.append(await shards.call_each(limit_of))
        assert seen == [["1.6 GiB"], ["864.0 MiB"] * 2, ["1.6 GiB"]]
        with caplog.at_level(logging.WARNING):
            shards.own(frozenset(range(10)))
        assert "is too small for 10 shards, which may need 2.8 GiB" in caplog.text
        await until(lambda: shards.ready)
    finally:
        await shards.close()
        await shards.models.stop()


async def test_a_shard_that_needs_more_than_its_share_says_which_setting(tmp_path: Path) -> None:
    def large(shard: Shard) -> None:
        shard.limit_memory(8 << 20)
        shard._catalog._db.execute("SET temp_directory = ''")
        shard._catalog._db.execute("SELECT list(range) FROM range(10_000_000)").fetchall()

    shards = owned(tmp_path, GIB)
    try:
        shards.own(frozenset({0}))
        with pytest.raises(ShardError, match=r"shard 0: .*raise memory_limit") as told:
            await shards.call(0, large)
        assert isinstance(told.value.__cause__, duckdb.OutOfMemoryException)
    finally:
        await shards.close()
        await shards.models.stop()


async def test_a_shard_that_was_being_opened_while_others_came_shares_with_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opening, gate = threading.Event(), threading.Event()

    def slowly(*given: Any, **more: Any) -> Shard:
        opening.set()
        gate.wait(30)
        return Shard(*given, **more)

    shards = owned(tmp_path, 2 * GIB)
    try:
        with monkeypatch.context() as patch:
            patch.setattr("streams.shards.owned.Shard", slowly)
            shards.own(frozenset({0}))
            await until(opening.is_set)
            shards.own(frozenset({0, 1}))
            gate.set()
            await until(lambda: shards.ready)
        assert await shards.call_each(limit_of) == ["864.0 MiB"] * 2
    finally:
        gate.set()
        await shards.close()
        await shards.models.stop()
