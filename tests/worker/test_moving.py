"""Partitions go to the worker that has their state."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from schemas.settings import Settings
from streams.app import Siltstone
from streams.doors.cli import running
from streams.kafka.clients.broker import ensure_topics
from tables.reached import reached
from tests.support.waiting import until

PARTITIONS = 6


@pytest.fixture
async def settings(settings: Settings) -> Settings:
    kafka = settings.kafka.model_copy(update={"partitions": PARTITIONS})
    settings = settings.model_copy(update={"kafka": kafka})
    await ensure_topics(settings.kafka)
    return settings


@asynccontextmanager
async def at_work(settings: Settings, data: Path) -> AsyncIterator[Siltstone]:
    """A worker with a disk of its own."""
    async with running.started(settings.model_copy(update={"data_dir": data})) as worker:
        yield worker


async def settled(*workers: Siltstone) -> list[set[int]]:
    """What each of them has when together they have all."""
    partitions = [*range(workers[0].settings.kafka.partitions)]
    await until(
        lambda: (
            sorted(partition for one in workers for partition in one.shards.partitions()) == partitions
            and all(one.health.ready for one in workers)
        ),
        alive=workers,
    )
    return [set(one.shards.partitions()) for one in workers]


async def test_a_worker_that_comes_back_gets_what_is_on_its_disk_and_one_more_takes_its_share(
    settings: Settings, tmp_path: Path
) -> None:
    """The others keep what they had: nothing is fetched that was on a disk already."""
    one, two, three = tmp_path / "one", tmp_path / "two", tmp_path / "three"
    async with at_work(settings, one) as first, AsyncExitStack() as others:
        async with at_work(settings, two) as second:
            kept, gone = await settled(first, second)
            assert (len(kept), len(gone)) == (3, 3)
        await settled(first)
        assert reached(two / "shards").keys() == gone
        second = await others.enter_async_context(at_work(settings, two))
        assert await settled(first, second) == [kept, gone]
        third = await others.enter_async_context(at_work(settings, three))
        left, right, new = await settled(first, second, third)
        assert left < kept
        assert right < gone
        assert (len(left), len(right), len(new)) == (2, 2, 2)
