"""What is found out of partitions counts for the assignment in which it was asked for."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from schemas.errors import BrokerUnavailable
from schemas.settings import Settings
from streams.app import Siltstone
from streams.worker import assignment
from tests.support.window_stores import close_stores


@pytest.fixture
async def worker(tmp_path: Path) -> AsyncIterator[Siltstone]:
    """One that is not started."""
    made = Siltstone(Settings.load(data_dir=tmp_path))
    yield made
    close_stores(made.context.stores)


async def test_tables_that_are_back_say_nothing_of_those_that_are_read_by_then(
    worker: Siltstone, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Partitions are assigned while what follows recovery is still being posted."""
    stores, hot = worker.context.stores, worker.hot

    async def assigned_meanwhile() -> None:
        hot.assignments += 1
        stores.open(3)

    monkeypatch.setattr(worker.intake.short_term, "recovered", assigned_meanwhile)
    await worker._assignment.tables_recovered()
    store = stores.store(3)
    assert store is not None
    assert (worker._assignment.is_recovered(), store.fitted) == (False, False)


async def test_a_catch_up_is_not_tried_again_when_partitions_were_assigned(
    worker: Siltstone, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It begins again with the offset that is committed by then; the partition may be another worker's."""
    tried: list[tuple[int, int]] = []

    async def catch_up(partition: int, committed: int) -> None:
        tried.append((partition, committed))
        worker.hot.assignments += 1
        raise BrokerUnavailable("nowhere:9092")

    monkeypatch.setattr(assignment, "RETRY_SECONDS", 0.0)
    monkeypatch.setattr(worker.long_term, "catch_up", catch_up)
    await asyncio.wait_for(worker._assignment._catch_up(3, 17, worker.hot.assignments), 30)
    assert (tried, worker.hot.halted) == ([(3, 17)], None)
