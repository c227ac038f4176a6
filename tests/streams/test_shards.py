"""A worker's shards are closed, each for itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from schemas.settings import LifecycleSettings, LongTermSettings
from streams.shards import OwnedShards
from tables.shard.shard import Shard
from tests.streams.test_models import Toy, embedding_of
from tests.support.waiting import until


async def test_a_shard_that_cannot_be_closed_keeps_no_other_from_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is told when all of them are."""
    shards = OwnedShards(
        tmp_path,
        LongTermSettings(),
        LifecycleSettings(),
        embedding_of(Toy("toy", 0)),
        lambda exc, where: pytest.fail(f"{where}: {exc}"),
    )
    shards.own(frozenset({0, 1}))
    await until(lambda: shards.ready)
    closed, close = list[int](), Shard.close

    def closing(shard: Shard) -> None:
        close(shard)
        if shard.partition == 0:
            raise OSError("the disk is full")
        closed.append(shard.partition)

    monkeypatch.setattr(Shard, "close", closing)
    with pytest.raises(OSError, match="the disk is full"):
        await shards.close()
    assert closed == [1]
    await shards.models.stop()
