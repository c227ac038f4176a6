"""Checkpoints that are asked for: one at a time of a partition, by the worker that has it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from schemas.errors import CheckpointError, ShardNotHere, StoreUnavailable
from streams.shards.restore.asked_checkpoints import Asked, AskedCheckpoints
from tables.checkpoints.checkpoints import Taken


@dataclass(frozen=True)
class Done:
    outcome: str
    taken: Taken | None = None
    why: str = ""


async def ended(asked: AskedCheckpoints, partition: int) -> Asked:
    for _ in range(10):
        await asyncio.sleep(0)
        if not (one := asked.of(partition)).running:
            return one
    raise AssertionError("it goes on and on")


@pytest.mark.parametrize(
    ("done", "told"),
    [
        (Done("taken", Taken(7, 10, 100)), Asked(False, False, 7, 10, 100)),
        (Done("unchanged"), Asked(False, unchanged=True)),
        (Done("given_up", why="something was forgotten"), Asked(False, error="something was forgotten")),
    ],
)
async def test_what_became_of_it_is_told(done: Done, told: Asked) -> None:
    async def take(partition: int) -> Done:
        assert partition == 3
        return done

    asked = AskedCheckpoints(take, lambda: [3])
    asked.begin(3)
    assert asked.of(3) == Asked(running=True)
    assert await ended(asked, 3) == told


async def test_one_that_is_under_way_is_not_begun_again() -> None:
    begun, go_on = list[int](), asyncio.Event()

    async def take(partition: int) -> Done:
        begun.append(partition)
        await go_on.wait()
        return Done("unchanged")

    asked = AskedCheckpoints(take, lambda: [3])
    for _ in range(3):
        asked.begin(3)
        await asyncio.sleep(0)
    go_on.set()
    await ended(asked, 3)
    asked.begin(3)
    await ended(asked, 3)
    assert begun == [3, 3]


async def test_a_store_that_is_away_is_told_and_another_workers_partition_forwarded() -> None:
    async def take(partition: int) -> Done:
        raise StoreUnavailable("s3://bucket", "no answer")

    asked = AskedCheckpoints(take, lambda: [3])
    asked.begin(3)
    assert "s3://bucket cannot be used" in (await ended(asked, 3)).error
    for ask in (asked.begin, asked.of):
        with pytest.raises(ShardNotHere):
            ask(4)


async def test_where_none_are_made_the_setting_is_named() -> None:
    asked = AskedCheckpoints(None, lambda: [3])
    with pytest.raises(CheckpointError, match=r"set checkpoints\.url"):
        asked.begin(3)
    with pytest.raises(CheckpointError, match="ask again"):
        asked.of(3)


async def test_a_worker_that_stops_waits_for_none() -> None:
    async def take(partition: int) -> Done:
        await asyncio.Event().wait()
        return Done("unchanged")

    asked = AskedCheckpoints(take, lambda: [3])
    asked.begin(3)
    await asyncio.sleep(0)
    await asked.close()
