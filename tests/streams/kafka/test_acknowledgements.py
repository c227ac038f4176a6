"""A batch counts as done when it is: not when the partitions have moved, and not when its agent raised on it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiokafka
import pytest
from faust.types import TP

from schemas.settings import Settings
from tests.streams.kafka.worker import TextWorker, feed, on_one_partition, running, unconnected
from tests.support.committed import committed
from tests.support.waiting import until

GENERATION = 7


@pytest.fixture
async def worker(settings: Settings) -> AsyncIterator[TextWorker]:
    with unconnected(settings) as unstarted:
        unstarted.app.consumer_generation_id = GENERATION
        unstarted.app.flow_control.resume()
        yield unstarted


def fetched(worker: TextWorker, last_offset: int = 9) -> Any:
    """The message of a batch from offset 0 on, as it goes to the agent."""
    record = aiokafka.ConsumerRecord(
        worker.topic,
        partition=0,
        offset=last_offset,
        timestamp=0,
        timestamp_type=0,
        key=None,
        value=[],
        checksum=None,
        serialized_key_size=0,
        serialized_value_size=0,
        headers=(),
    )
    return worker.consumer._to_message(TP(worker.topic, 0), record)


async def test_a_batch_that_is_processed_may_be_committed_to_its_end(worker: TextWorker) -> None:
    message = fetched(worker)
    assert worker.consumer.ack(message)
    assert worker.done == 10


async def test_a_batch_is_acknowledged_once(worker: TextWorker) -> None:
    message = fetched(worker)
    assert [worker.consumer.ack(message) for _ in range(2)] == [True, False]


async def test_a_batch_of_a_former_generation_acknowledges_nothing(worker: TextWorker) -> None:
    """The partition may have moved and come back: its records are read again."""
    message = fetched(worker)
    worker.app.consumer_generation_id = GENERATION + 1
    assert not worker.consumer.ack(message)
    assert worker.done is None


async def test_a_batch_that_ends_while_partitions_move_acknowledges_nothing(worker: TextWorker) -> None:
    message = fetched(worker)
    worker.app.flow_control.suspend()
    assert not worker.consumer.ack(message)
    assert worker.done is None


async def test_a_skipped_batch_holds_back_the_one_after_it(worker: TextWorker) -> None:
    """Faust acknowledges what it takes off a queue in a rebalance, too."""
    skipped, processed = fetched(worker, 9), fetched(worker, 19)
    worker.app.flow_control.suspend()
    worker.consumer.ack(skipped)
    worker.app.flow_control.resume()
    assert worker.consumer.ack(processed)
    assert worker.done is None


async def test_after_a_fault_nothing_is_acknowledged(worker: TextWorker) -> None:
    message = fetched(worker)
    worker.hot.halt(ValueError("a fault"), "a test")
    assert not worker.consumer.ack(message)
    assert worker.done is None


async def test_a_batch_whose_effects_are_still_out_counts_as_done_when_they_are(worker: TextWorker) -> None:
    """The batch after it does not wait for them, but is not committed before them either."""
    first, second = fetched(worker, 9), fetched(worker, 19)
    effects = worker.hot.effects[first.tp, first.offset] = asyncio.get_running_loop().create_future()
    for message in (first, second):
        assert worker.consumer.ack(message)
    assert worker.done is None
    effects.set_result(None)
    await until(lambda: worker.done == 20)
    assert not worker.hot.effects


async def test_effects_that_are_done_after_a_seek_acknowledge_nothing(worker: TextWorker) -> None:
    """The batch is read again, and its effects are had again."""
    message = fetched(worker)
    effects = worker.hot.effects[message.tp, message.offset] = asyncio.get_running_loop().create_future()
    assert worker.consumer.ack(message)
    worker.consumer._ledgers.clear()
    fetched(worker)
    effects.set_result(None)
    await asyncio.sleep(0)
    assert worker.done is None


async def test_a_batch_that_its_agent_raised_on_is_read_again_by_the_next_worker(settings: Settings) -> None:
    """It is not committed, nor is anything else once it has raised; the next worker has the rest of the state."""
    settings = on_one_partition(settings)
    async with running(settings, refused=b"bad") as first:
        await feed(settings, ["a", "b"], "good")
        await until(lambda: first.done == 2)
        assert await first.consumer.commit()
        await feed(settings, ["c"], "good")
        await until(lambda: first.done == 3)
        await feed(settings, ["d"], "bad")
        with pytest.raises(ValueError, match="refused"):
            await asyncio.wait_for(first.hot.until_halted(), 30)
        await feed(settings, ["e"], "good")
        await until(lambda: first.read == [0, 1, 2, 3, 4])
        assert not await first.consumer.commit()
    assert await committed(settings.kafka, 0) == 2
    async with running(settings) as second:
        await until(lambda: second.done == 5)
        assert second.recovered == dict.fromkeys("ab", "good")
        assert second.read == [2, 3, 4]
