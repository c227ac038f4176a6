"""Items whose time is over are asked to be removed, and are gone once that is read."""

from __future__ import annotations

import uuid
from pathlib import Path

from schemas.events import LONG_TERM_EVENT, Expire, Remember
from schemas.settings import LifecycleSettings, LongTermSettings
from schemas.topics import Topics
from streams.kafka.commit.outbox import Outbox
from streams.kafka.event_log import EventLog
from streams.memory.expiry import ExpiryJob
from streams.shards.owned import OwnedShards
from tables.memories.shard import Shard
from tests.streams.kafka.commit.test_outbox import Broker
from tests.streams.memory.test_analytics import Toy
from tests.support.making import START, axis
from tests.tables.commands import event

KEY = uuid.UUID(int=7)


async def test_what_has_expired_is_removed_by_an_event(tmp_path: Path) -> None:
    broker, outbox = Broker(), Outbox()
    outbox.connect(broker)
    shards = OwnedShards(tmp_path, LongTermSettings(), LifecycleSettings(), Toy(), lambda exc, where: None)
    shards.own(frozenset({0}))
    job = ExpiryJob(shards=shards, event_log=EventLog(outbox, Topics.with_prefix("t.")))
    item = event(Remember, kind="item", memory_id=KEY, text="a", ttl_seconds=60)
    await shards.call(0, Shard.apply, [item], {item.event_id: axis(0)}, START)
    assert [await job.tick(now) for now in (0, START + 59_999)] == [0, 0]
    assert [await job.tick(START + 60_000) for _ in range(2)] == [1, 1]
    first, again = (LONG_TERM_EVENT.validate_json(value or b"") for _, _, _, value in broker.log)
    assert isinstance(first, Expire)
    assert first == again
    await shards.call(0, Shard.apply, [first, again], {}, START)
    assert await shards.call(0, Shard.memory_of, "u", KEY) is None
    assert await job.tick(START + 60_000) == 0
    await shards.close()
