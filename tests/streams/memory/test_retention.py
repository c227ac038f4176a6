"""A log that is read again is passed over below the low watermark, and one that is new is not."""

from __future__ import annotations

import uuid
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import pytest

from schemas.errors import BrokerUnavailable
from schemas.events import LongTermEvent, Remember, Touch
from schemas.settings import RetentionSettings
from streams.memory.retention import RetentionJob
from tables.memories.catalog.watermarks import DAY_MS
from tables.memories.shard import Shard
from tests.streams.memory.test_agent import USERS, Worker, said, worker
from tests.support.making import START
from tests.support.waiting import until

__all__ = ["worker"]


class Broker:
    """The log of partition 0, and the days that pass; both workers' parts read the same."""

    def __init__(self, worker: Worker) -> None:
        self.worker, self.records, self.now, self.reads = worker, list[Any](), START, 0
        self.down = False
        worker.agent._read = self.read
        worker.model.gate.set()
        self.retention = RetentionJob(
            shards=worker.shards,
            settings=RetentionSettings(),
            clock=worker.siltstone.clock,
            read=self.read,
            now=lambda: self.now,
        )

    async def read(self, partition: int, start: int, end: int) -> AsyncGenerator[Sequence[Any], None]:
        """As the log reader: from the beginning where the log ends before `start`."""
        self.reads += 1
        if self.down:
            raise BrokerUnavailable("nowhere", "down")
        found = self.records if start > len(self.records) else self.records[start:]
        if found := [record for record in found if record.offset < end]:
            yield found

    def empty(self) -> None:
        """A new broker behind the old data directory."""
        self.records, self.worker._offsets[0] = [], 0

    async def say(self, *events: LongTermEvent) -> None:
        self.records += self.worker.fetched(0, *events)
        await self.deliver(len(self.records) - len(events))

    async def deliver(self, start: int, size: int = 100) -> None:
        """As a consumer whose group has committed `start`; each batch is a group."""
        for first in range(start, len(self.records), size):
            await (await self.worker.agent.handle(0, self.records[first : first + size]))

    async def pass_days(self, days: int) -> None:
        for _ in range(days):
            self.now += DAY_MS
            await self.retention.tick()

    async def ids(self) -> int:
        """How many events' ids the shard knows."""

        def known(shard: Shard) -> int:
            ((number,),) = shard._catalog._db.execute("SELECT count(*) FROM applied").fetchall()
            return int(number)

        return await self.worker.shards.call(0, known)

    async def accesses(self) -> list[int]:
        return [memory.access_count for memory in await self.worker.shards.call(0, Shard.memories_of, USERS[0])]


def touch(memory: Remember) -> Touch:
    return Touch(event_id=uuid.uuid4(), user_id=USERS[0], timestamp=START + 1, memory_ids=[memory.event_id])


@pytest.fixture
async def broker(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> Broker:
    """Ten accesses of a memory, whose ids are dropped by now, and one more that came a week later."""
    made, (tea,) = Broker(worker), said(0, "tea")
    monkeypatch.setattr("streams.memory.agent.now_ms", lambda: made.now)
    await until(lambda: worker.shards.ready)
    await made.say(tea, *(touch(tea) for _ in range(10)))
    await made.pass_days(2)
    await made.say(touch(tea))
    await made.pass_days(7)
    assert (await made.ids(), await made.accesses()) == (1, [11])
    return made


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 5, 100])
@pytest.mark.parametrize("reopened", [True, False])
async def test_what_is_read_again_from_its_beginning_is_applied_once_though_no_id_is_known(
    broker: Broker, size: int, reopened: bool
) -> None:
    """As after a group's offsets have expired at the broker: in groups of any size."""
    if reopened:
        broker.worker.assign()
    await broker.deliver(0, size)
    assert await broker.accesses() == [11]
    assert await broker.worker.shards.call(0, Shard.position) == 12
    assert (await broker.worker.shards.call(0, lambda shard: shard.watermarks.low())) is not None
    await broker.say(touch(said(0, "tea")[0]))
    assert await broker.accesses() == [12]


@pytest.mark.slow
async def test_it_is_asked_once_whether_the_log_is_the_same(broker: Broker) -> None:
    before = broker.reads
    await broker.deliver(0, 1)
    assert broker.reads == before + 1


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 100])
@pytest.mark.parametrize("events", [3, 30])
async def test_the_events_of_a_new_log_are_new_at_whatever_offset(broker: Broker, events: int, size: int) -> None:
    """A new, empty broker behind the old data directory; what is known of the former one's events stays in."""
    last = broker.records[-1]
    broker.empty()
    tea = said(0, "tea")[0]
    new = [touch(tea) for _ in range(events)]
    broker.records += broker.worker.fetched(0, *new)
    await broker.deliver(0, size)
    assert await broker.accesses() == [11 + events]
    broker.records += broker.worker.fetched(0, Touch.model_validate_json(last.value))
    await broker.deliver(len(broker.records) - 1)
    await broker.deliver(0, size)
    assert await broker.accesses() == [11 + events]


@pytest.mark.slow
async def test_ids_of_a_new_log_are_dropped_in_their_turn(broker: Broker) -> None:
    """Though its offsets never come near those of the former one."""
    broker.empty()
    await broker.say(touch(said(0, "tea")[0]))
    await broker.pass_days(1)
    assert await broker.ids() == 2
    await broker.pass_days(8)
    assert await broker.ids() == 0
    await broker.deliver(0)
    assert await broker.accesses() == [12]


@pytest.mark.slow
async def test_a_broker_that_is_down_is_asked_the_next_time(broker: Broker) -> None:
    await broker.say(touch(said(0, "tea")[0]))
    broker.down = True
    await broker.pass_days(20)
    assert await broker.ids() == 2
    broker.down = False
    await broker.pass_days(9)
    assert await broker.ids() == 0


@pytest.mark.slow
async def test_a_day_asks_the_log_twice(broker: Broker) -> None:
    await broker.say(touch(said(0, "tea")[0]))
    before = broker.reads
    await broker.pass_days(1)
    await broker.retention.tick()
    assert broker.reads == before + 2
