"""A worker's shards are closed, each for itself, and who waits for one that goes is told so."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import count
from pathlib import Path

import pytest

from schemas.errors import DamagedShard, ShardNotHere
from schemas.settings import LifecycleSettings, LongTermSettings
from streams.runtime.cancellation import cancellable
from streams.shards.owned import OwnedShards
from tables.memories.catalog.reembedding import VectorModel
from tables.memories.shard import Shard
from tests.streams.shards.test_models import Toy, embedding_of
from tests.support.waiting import until


def shards_in(folder: Path) -> OwnedShards:
    return OwnedShards(
        folder,
        LongTermSettings(),
        LifecycleSettings(),
        embedding_of(Toy("toy", 0)),
        lambda exc, where: pytest.fail(f"{where}: {exc}"),
    )


async def being_brought(
    _partition: int, _folder: Path, _models: Sequence[VectorModel], _damaged: DamagedShard | None
) -> None:
    await asyncio.Event().wait()


async def test_work_that_waits_for_a_shard_is_told_when_its_partition_goes_before_it_is_open(tmp_path: Path) -> None:
    """It was cancelled with the opening before: a timer, or a task that rates, ended without a word."""
    shards = shards_in(tmp_path)
    shards.bring = being_brought
    shards.own(frozenset({0}))
    work = asyncio.create_task(shards.call(0, Shard.count))
    await asyncio.sleep(0)
    shards.own(frozenset())
    with pytest.raises(ShardNotHere):
        await work
    await shards.close()
    await shards.models.stop()


async def test_cancelled_work_makes_room_for_the_next(tmp_path: Path) -> None:
    """A request that got 503 stops looping over memories: the other requests of the shard wait behind it."""
    shards, passed = shards_in(tmp_path), list[int]()
    shards.own(frozenset({0}))

    def endless(shard: Shard) -> None:
        for one in cancellable(count()):
            passed.append(one)

    work = asyncio.create_task(shards.call(0, endless))
    await until(lambda: passed)
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert await shards.call(0, Shard.count) == 0
    assert await shards.call(0, lambda _: list(cancellable(range(3)))) == [0, 1, 2]
    shards.own(frozenset())
    await shards.close()
    await shards.models.stop()


async def test_work_that_is_cancelled_while_it_waits_for_a_shard_ends(tmp_path: Path) -> None:
    """Also where the opening is cancelled in the same moment."""
    shards = shards_in(tmp_path)
    shards.bring = being_brought
    shards.own(frozenset({0}))
    alone, together = (asyncio.create_task(shards.call(0, Shard.count)) for _ in range(2))
    await asyncio.sleep(0)
    alone.cancel()
    with pytest.raises(asyncio.CancelledError):
        await alone
    shards.own(frozenset())
    together.cancel()
    with pytest.raises(asyncio.CancelledError):
        await together
    await shards.close()
    await shards.models.stop()


async def test_work_does_not_get_a_shard_that_is_closed_as_soon_as_it_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The partition went and came back: a shard that is being closed would be called on the next one's thread."""
    shards = shards_in(tmp_path)
    opened, opening = asyncio.Event(), shards._opened

    async def last_step(partition: int) -> Shard:
        shard = await opening(partition)
        shards.own(frozenset())
        shards.own(frozenset({partition}))
        opened.set()
        return shard

    monkeypatch.setattr(shards, "_opened", last_step)
    shards.own(frozenset({0}))
    monkeypatch.setattr(shards, "_opened", opening)
    work = asyncio.create_task(shards.call(0, Shard.count))
    await opened.wait()
    with pytest.raises(ShardNotHere):
        await work
    assert await shards.call(0, Shard.count) == 0
    await shards.close()
    await shards.models.stop()


async def test_a_shard_that_cannot_be_closed_keeps_no_other_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told when all of them are."""
    shards = shards_in(tmp_path)
    shards.own(frozenset({0, 1}))
    await until(lambda: shards.ready)
    closed, close = list[int](), Shard.close

    def closing(shard: Shard) -> None:
        partition = shard.partition
        close(shard)
        if partition == 0:
            raise OSError("the disk is full")
        closed.append(partition)

    monkeypatch.setattr(Shard, "close", closing)
    with pytest.raises(OSError, match="the disk is full"):
        await shards.close()
    assert closed == [1]
    await shards.models.stop()
