"""What waits for a partition is written together, in its order, and counts as processed when it is in, or never."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.memory.group_commit import MOST_WAITING, GroupWriter
from tests.support.examples import examples
from tests.support.waiting import until


class Shard:
    """Keeps the groups that are written; each write waits at the gate."""

    def __init__(self, most: int = 4) -> None:
        self.groups: list[list[Any]] = []
        self.begun = 0
        self.gate = asyncio.Event()
        self.fault: Exception | None = None
        self.writer = GroupWriter(self.write, most=most)

    async def write(self, records: Sequence[Any]) -> None:
        self.begun += 1
        await self.gate.wait()
        if self.fault is not None:
            raise self.fault
        self.groups.append(list(records))

    async def join(self, *batches: Sequence[Any]) -> list[asyncio.Future[None]]:
        return [await self.writer.join(batch) for batch in batches]


@pytest.fixture
async def shard() -> AsyncIterator[Shard]:
    made = Shard()
    yield made
    made.writer.revoke()
    await made.writer.stopped()


async def begun(shard: Shard, writes: int = 1) -> None:
    await until(lambda: shard.begun == writes)


def outcomes(batches: Sequence[asyncio.Future[None]]) -> list[str]:
    def outcome(batch: asyncio.Future[None]) -> str:
        if not batch.done():
            return "waits"
        if batch.cancelled():
            return "cancelled"
        return "in" if batch.exception() is None else "failed"

    return [outcome(batch) for batch in batches]


async def test_what_comes_during_a_write_is_one_group(shard: Shard) -> None:
    batches = await shard.join("a")
    await begun(shard)
    batches += await shard.join("b", "cd")
    shard.gate.set()
    await asyncio.gather(*batches)
    assert shard.groups == [["a"], ["b", "c", "d"]]


async def test_a_group_ends_at_its_most_and_a_batch_may_go_on_in_the_next(shard: Shard) -> None:
    batches = await shard.join("abc", "def")
    shard.gate.set()
    await asyncio.gather(*batches)
    assert shard.groups == [["a", "b", "c", "d"], ["e", "f"]]


async def test_a_batch_larger_than_a_group_counts_as_processed_when_its_last_group_is_in(shard: Shard) -> None:
    (batch,) = await shard.join("abcdef")
    groups_in: list[int] = []
    batch.add_done_callback(lambda _: groups_in.append(len(shard.groups)))
    shard.gate.set()
    await batch
    await asyncio.sleep(0)
    assert (groups_in, shard.groups) == ([2], [["a", "b", "c", "d"], ["e", "f"]])


async def test_nothing_counts_as_processed_before_its_group_is_in(shard: Shard) -> None:
    batches = await shard.join("a", "b")
    await begun(shard)
    assert outcomes(batches) == ["waits", "waits"]
    shard.gate.set()
    await asyncio.gather(*batches)


async def test_a_writer_that_had_nothing_to_do_goes_on(shard: Shard) -> None:
    shard.gate.set()
    for batch in ("a", "b"):
        await asyncio.gather(*await shard.join(batch))
    assert shard.groups == [["a"], ["b"]]


async def test_a_fault_fails_all_that_is_not_in_and_nothing_more_is_written(shard: Shard) -> None:
    first = await shard.join("a")
    await begun(shard)
    behind = await shard.join("b")
    shard.fault = OSError("the disk is full")
    shard.gate.set()
    with pytest.raises(OSError, match="full"):
        await first[0]
    shard.fault = None
    later = await shard.join("c")
    assert outcomes([*first, *behind, *later]) == ["failed", "failed", "cancelled"]
    assert (shard.begun, shard.groups) == (1, [])


async def test_a_fault_leaves_what_was_in_before_it_in(shard: Shard) -> None:
    shard.gate.set()
    batches = await shard.join("a")
    await asyncio.gather(*batches)
    shard.fault = OSError("the disk is full")
    batches += await shard.join("b")
    await until(lambda: batches[1].done())
    assert outcomes(batches) == ["in", "failed"]


async def test_a_revoked_partitions_batches_are_neither_written_nor_processed(shard: Shard) -> None:
    batches = await shard.join("a")
    await begun(shard)
    batches += await shard.join("b", "c")
    shard.writer.revoke()
    shard.gate.set()
    await shard.writer.stopped()
    batches += await shard.join("d")
    assert outcomes(batches) == ["cancelled"] * 4
    assert (shard.begun, shard.groups) == (1, [])


async def test_a_batch_that_waits_for_room_is_let_go_when_its_partition_is_revoked(shard: Shard) -> None:
    joining = asyncio.create_task(shard.join(range(MOST_WAITING + 5)))
    await begun(shard)
    shard.writer.revoke()
    assert outcomes(await joining) == ["cancelled"]


async def test_a_batch_waits_for_room_where_too_many_records_wait(shard: Shard) -> None:
    await shard.join("a", range(MOST_WAITING))
    joining = asyncio.create_task(shard.join("b"))
    await begun(shard)
    assert not joining.done()
    shard.gate.set()
    await asyncio.gather(*await joining)


async def test_what_comes_while_other_work_goes_first_is_of_the_same_group() -> None:
    backlog = asyncio.Event()

    async def ready() -> None:
        await backlog.wait()

    shard = Shard()
    shard.writer = GroupWriter(shard.write, ready, most=4)
    shard.gate.set()
    batches = await shard.join("a")
    await asyncio.sleep(0)
    batches += await shard.join("b")
    backlog.set()
    await asyncio.gather(*batches)
    assert shard.groups == [["a", "b"]]


async def test_a_cancelled_write_of_a_partition_that_is_still_ours_is_a_fault(shard: Shard) -> None:
    """Else its records would wait for ever, and nobody would know."""
    batches = await shard.join("a")
    await begun(shard)
    assert shard.writer._task is not None
    shard.writer._task.cancel()
    await shard.writer.stopped()
    assert outcomes(batches) == ["failed"]


@examples(50)
@given(st.lists(st.lists(st.integers(), max_size=9), max_size=12), st.integers(1, 7))
def test_each_record_is_written_once_and_in_its_order(batches: list[list[int]], most: int) -> None:
    async def run() -> list[list[Any]]:
        shard = Shard(most)
        shard.gate.set()
        await asyncio.gather(*await shard.join(*(batch for batch in batches if batch)))
        return shard.groups

    groups = asyncio.run(run())
    assert [record for group in groups for record in group] == [record for batch in batches for record in batch]
    assert all(0 < len(group) <= most for group in groups)
