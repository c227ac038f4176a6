"""The whole way of a record without a broker: a worker's own agents, tables and shard, and a log in memory.

What agents send is read again where it belongs, as by a worker. The log refuses what aiokafka and a broker refuse.
"""

from __future__ import annotations

import asyncio
import zlib
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, cast

import numpy as np

from schemas.errors import BadRecord
from schemas.settings import Settings
from schemas.topic_specs import MAX_RECORD_BYTES
from schemas.topics import Headers
from streams.app import Siltstone
from streams.intake import agent as short_term
from streams.kafka.commit.sends import Producer
from streams.memory import agent as long_term
from streams.models.embedding.embedding import Model, Side, Vectors
from tables.memories.shard import Shard
from tables.windows.short_term import ShortTermStore
from tests.crash.chatter import Said
from tests.support.making import START, axis
from tests.support.window_stores import close_stores

DIMENSION = 32
#: Everything happens early: windows are full, sessions are long, users have too many memories, and those go.
SETTINGS: dict[str, Any] = {
    "kafka": {"partitions": 1},
    "memory": {"capacity": 3, "promote_threshold": 1, "notes": 2, "scoring": {"policy": "all"}},
    "long_term": {"max_memories_per_user": 4},
    "lifecycle": {"clock": "event", "cleanup": {"enabled": True, "after_days": 1, "whitelist": {"tags": ["a"]}}},
}
#: At least what a broker adds to a record.
ENVELOPE_BYTES = 200
#: When records were appended (epoch ms): after everything that tests say, so that no message is dated ahead.
APPENDED = START + 30 * 86_400_000

DECODERS = {"conversations": short_term.decode, "long_term": long_term.decode}


@dataclass
class Record:
    """What an agent reads of a Kafka record."""

    topic: str
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    timestamp: int = APPENDED
    partition: int = 0


class Log:
    """Keeps what is sent, by topic, and knows what was read of it."""

    def __init__(self) -> None:
        self.records: defaultdict[str, list[Record]] = defaultdict(list)
        self._read: Counter[str] = Counter()

    async def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None,
        partition: int | None = 0,
        timestamp_ms: int | None = None,
        *,
        headers: Headers = (),
    ) -> asyncio.Future[Any]:
        assert (key, value) != (None, None), "aiokafka sends no such record"
        assert not headers or isinstance(headers, list), "aiokafka takes a list of headers"
        size = len(key or b"") + len(value or b"") + sum(len(name) + len(held or b"") for name, held in headers)
        assert size + ENVELOPE_BYTES < MAX_RECORD_BYTES, f"a broker takes no record of {size} bytes"
        self.append(topic, key, value, headers)
        acknowledged = asyncio.get_running_loop().create_future()
        acknowledged.set_result(self.records[topic][-1])  # where it lies, as a broker says
        return acknowledged

    def append(self, topic: str, key: bytes | None, value: bytes | None, headers: Headers = ()) -> None:
        self.records[topic].append(Record(topic, len(self.records[topic]), key, value, headers))

    def unread(self, topic: str) -> list[Record]:
        """What has come since it was asked for the last time."""
        new = self.records[topic][self._read[topic] :]
        self._read[topic] += len(new)
        return new


class Toy:
    """An embedding model of few directions, so that now and then texts are near-copies."""

    simultaneous = 1

    async def load(self) -> Model:
        return Model("toy", DIMENSION)

    async def embed(self, texts: Sequence[str], of: Side, attempt: int, *, urgent: bool) -> Vectors:
        return np.stack([axis(zlib.crc32(text.encode()) % DIMENSION, DIMENSION) for text in texts])

    async def close(self) -> None:
        pass


class Way:
    """One partition of a worker, to be used in a `with` block."""

    def __init__(self, data: Path) -> None:
        self.worker, self.log = Siltstone(Settings.load(data_dir=data, **SETTINGS)), Log()
        self._topics = self.worker.topics
        self._runner = asyncio.Runner()

    def __enter__(self) -> Self:
        self._runner.run(self._start())
        return self

    def __exit__(self, *_: object) -> None:
        self._runner.run(self.worker.shards.close())
        close_stores(self.worker.context.stores)
        self._runner.run(self.worker.shards.models.current.stop())
        self._runner.close()

    def take(self, records: Sequence[Said]) -> None:
        """What a worker does with records, and with all that follows from them. Raises what would stop it."""
        self._runner.run(self._take(records))

    def age(self) -> None:
        """What timers do: states are recomputed, what nobody needs is asked to go, and goes."""
        self._runner.run(self._age())

    def assert_all_accounted_for(self) -> None:
        """Each record is taken or a dead letter, once; the short-term tables read back, and the index is in step."""
        refused = [
            (getattr(self._topics, topic), record.offset)
            for topic, decode in DECODERS.items()
            for record in self.log.records[getattr(self._topics, topic)]
            if refusal(decode, record) not in ("", "nothing_said")  # what has no words is passed over
        ]
        letters = [dict(letter.headers) for letter in self.log.records[self._topics.dead_letters]]
        dead = [(letter["source.topic"].decode(), int(letter["source.offset"])) for letter in letters]
        assert sorted(dead) == sorted(refused)
        fresh = ShortTermStore()
        for name in ("exchanges", "sessions", "notes"):
            table, restored = getattr(self.worker.intake.windows, name), getattr(fresh, name)
            changes = table.drain()
            assert all(len(change.value or b"") + ENVELOPE_BYTES < MAX_RECORD_BYTES for change in changes)
            restored.restore(0, [(change.key, change.value) for change in changes])
            assert {key: row for _, key, row in restored.items()} == {key: row for _, key, row in table.items()}
        assert self._runner.run(self.worker.shards.call(0, Shard.in_step))

    async def _start(self) -> None:
        worker = self.worker
        worker.shards.models.current._backend = Toy()
        worker.shards.models.current.start()
        worker.hot.outbox.connect(cast(Producer, self.log))
        worker.context.gate._lag = lambda: 0  # it would ask the consumer, which has not started
        worker.context.stores.open(0)
        worker.shards.own(frozenset({0}))
        worker.long_term.own(frozenset({0}))

    async def _take(self, records: Sequence[Said]) -> None:
        for said in records:
            self.log.append(getattr(self._topics, said.topic), said.key, said.value)
        await self._read_all()

    async def _age(self) -> None:
        await self.worker.jobs.cleanup.tick(await self.worker.jobs.lifecycle.recompute())
        self.worker.notes.forget_expired()
        await self._read_all()

    async def _read_all(self) -> None:
        worker, topics, unread = self.worker, self._topics, True
        while unread:
            unread = False
            for topic, handle in (
                (topics.conversations, worker.intake.short_term.handle),
                (topics.long_term, worker.long_term.handle),
            ):
                if found := self.log.unread(topic):
                    if (effects := await handle(0, found)) is not None:
                        await effects
                    unread = True


def refusal(decode: Any, record: Any) -> str:
    """The kind of the `BadRecord`; empty where the record is taken."""
    try:
        decode(record)
    except BadRecord as error:
        return error.kind
    return ""


def readable(topic: str, value: bytes) -> Said | None:
    """The record under its user's key; None where it is refused, as such a record should be."""
    try:
        found = DECODERS[topic](Record(topic, 0, None, value))
    except BadRecord:
        return None
    return Said(topic, found.user_id.encode(), value)
