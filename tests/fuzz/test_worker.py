"""A worker on the real broker, among thousands of records that nobody should send."""

from __future__ import annotations

import contextlib
import random
import uuid
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import aiokafka
import duckdb
import pytest

from schemas.conversations import ChatMessage
from schemas.errors import BadRecord, NothingSaid
from schemas.events import LongTermEvent
from schemas.settings import Settings
from schemas.topics import REROUTED_HEADER, partition_of, route_of
from streams.app import Siltstone
from streams.doors.cli import running
from streams.intake.session_notes import is_short_term
from streams.kafka.clients.broker import client_options
from streams.kafka.clients.log_reader import ends, records_between
from streams.kafka.rerouting import Rerouting
from streams.memory import agent as long_term
from streams.telemetry.metrics import labelled
from tests.fuzz import raw
from tests.fuzz.mutations import hostile
from tests.fuzz.raw import Raw
from tests.fuzz.way import DECODERS, Toy
from tests.support.api import api
from tests.support.making import START, line
from tests.support.waiting import until, until_it_is
from tests.support.workers import sources
from tests.worker.test_pipeline import promoted

CALM = [f"calm-{n}" for n in range(8)]
#: Of each of them, before, between and after the hostile ones.
MESSAGES = 4
A_BATCH = 100
HEADERS: list[Any] = [
    *([()] * 12),
    [("traceparent", b"00-1")],
    [("", None), ("", b"")],
    [(REROUTED_HEADER, b"1")],
    [(raw.UNREADABLE, b"x")],
    [("large", b"x" * 70_000)],
]
TIMES = [None, None, None, START, 0, -1, 2**41, 2**53]


@pytest.fixture
def beset(settings: Settings) -> Settings:
    """Every exchange becomes a memory, and timers strike often."""
    scoring = settings.memory.scoring.model_copy(update={"policy": "all"})
    return settings.model_copy(
        update={
            "memory": settings.memory.model_copy(update={"scoring": scoring}),
            "long_term": settings.long_term.model_copy(update={"save_seconds": 1.0}),
            "lifecycle": settings.lifecycle.model_copy(update={"recompute_seconds": 1.0}),
            "analytics": settings.analytics.model_copy(update={"seconds": 1.0}),
        }
    )


def hostile_ones(worker: Siltstone, count: int) -> Iterator[Raw]:
    """Under right and wrong keys, or none; mostly, but not always, in the partition of the key."""
    chance, partitions = random.Random(count), worker.settings.kafka.partitions
    for _ in range(count):
        said = hostile(chance)
        key = chance.choice((said.key, said.key, said.key, said.key, None, b"", b"\xff"))
        value = said.value if chance.random() < 0.97 else None
        home = partition_of(said.key.decode(errors="replace"), partitions)
        partition = home if chance.random() < 0.9 else chance.randrange(partitions)
        topic = getattr(worker.topics, said.topic)
        yield Raw(topic, partition, key, value, chance.choice(HEADERS), chance.choice(TIMES))


def calm_ones(worker: Siltstone, turn: int) -> list[Raw]:
    """What people say in that turn, and that their sessions end."""
    said = []
    for user in CALM:
        key, partition = route_of(user, worker.settings.kafka.partitions)
        first, last = MESSAGES * turn, MESSAGES * (turn + 1)
        values = [line(i, user, ("user", "assistant")[i % 2], i) for i in range(first, last)]
        values.append(line(last, user, "user", last, type="session_end"))
        said += [Raw(worker.topics.conversations, partition, key, value) for value in values]
    return said


@pytest.mark.parametrize("count", [400, pytest.param(5000, marks=pytest.mark.slow)])
async def test_a_worker_outlives_whatever_is_sent_to_it(beset: Settings, count: int) -> None:
    """Each record is taken, rerouted, or one dead letter with its bytes. What people say meanwhile is remembered."""
    async with started(beset) as worker:
        noise, chance = list(hostile_ones(worker, count)), random.Random(2)
        await raw.send(beset.kafka, calm_ones(worker, 0))
        for start in range(0, count, A_BATCH):
            codec = chance.choice((raw.NONE, raw.NONE, raw.GZIP, raw.SNAPPY, raw.LZ4, raw.ZSTD))
            await raw.send(beset.kafka, noise[start : start + A_BATCH], codec)
            if start == count // 2:
                await raw.send(beset.kafka, calm_ones(worker, 1))
        await raw.send(beset.kafka, calm_ones(worker, 2))
        await all_read(worker)
        await until(lambda: set(worker.hot.lag().values()) == {0}, alive=worker)
        async with api(worker) as client:
            assert (await client.get("/readyz")).status_code == 200
        assert await assert_dead_letters_are_what_was_refused(worker) > count / 2
        assert promoted(worker) > len(CALM) * MESSAGES
        taken = await events_taken(worker)
    kept = sources(beset)
    assert all(kept[f"{user}-{i}"] == 1 for user in CALM for i in range(3 * MESSAGES))
    assert applied(beset.data_dir) == {
        (partition, event.event_id) for partition, event in taken if not is_short_term(event)
    }


@contextlib.asynccontextmanager
async def started(settings: Settings) -> AsyncIterator[Siltstone]:
    """With the toy model: the real one takes longer for these texts than all else together."""
    worker = Siltstone(settings)
    worker.shards.models.current._backend = Toy()
    try:
        await worker.start()
        await running.until_ready(worker)
        yield worker
    finally:
        await worker.stop()


async def all_read(worker: Siltstone) -> None:
    """Wait until nothing is to be read any more, and nothing follows from what was."""
    before: list[dict[int, int]] = []

    async def quiet() -> bool:
        nonlocal before
        last, before = before, [await worker.hot.ends(topic) for topic in sorted(worker.hot.topics)]
        done = [
            worker.hot.processed(topic, held) for topic, held in zip(sorted(worker.hot.topics), before, strict=True)
        ]
        return before == last and done == [sum(held.values()) for held in before]

    await until_it_is(quiet, alive=worker, seconds=180)


async def everything(kafka: Any, topic: str) -> list[Any]:
    """All records of a topic."""
    consumer = aiokafka.AIOKafkaConsumer(**client_options(kafka), enable_auto_commit=False)
    await consumer.start()
    try:
        partitions = [aiokafka.TopicPartition(topic, partition) for partition in range(kafka.partitions)]
        consumer.assign(partitions)
        found = await ends(consumer, partitions)
    finally:
        await consumer.stop()
    return [
        record
        for tp, end in found.items()
        if end
        async for records in records_between(kafka, topic, tp.partition, 0, end)
        for record in records
    ]


async def assert_dead_letters_are_what_was_refused(worker: Siltstone) -> int:
    """By coordinates and bytes, each once; and of what was not, each message is counted. How many there are."""
    kafka, topics, metrics = worker.settings.kafka, worker.topics, worker.metrics
    refused: dict[tuple[str, int, int], bytes | None] = {}
    messages = wordless = 0
    for name, decode in DECODERS.items():
        for record in await everything(kafka, getattr(topics, name)):
            try:
                found = decode(record)
            except NothingSaid:
                wordless += 1
            except BadRecord:
                refused[record.topic, record.partition, record.offset] = record.value
            else:
                messages += isinstance(found, ChatMessage) and not misrouted(worker, record, found.user_id)
    letters = await everything(kafka, topics.dead_letters)
    dead = {coordinates(letter): letter.value for letter in letters}
    assert len(letters) == len(dead) == sum(labelled(metrics.dead_letters).values())
    assert dead == refused
    assert wordless == sum(labelled(metrics.wordless).values())
    assert messages == sum(labelled(metrics.messages).values()) + sum(labelled(metrics.duplicates).values())
    return len(letters)


def coordinates(letter: Any) -> tuple[str, int, int]:
    headers = {name: value.decode() for name, value in letter.headers}
    return headers["source.topic"], int(headers["source.partition"]), int(headers["source.offset"])


def misrouted(worker: Siltstone, record: Any, user_id: str) -> bool:
    rerouting = Rerouting(worker.hot.outbox, worker.metrics, worker.settings.kafka.partitions)
    return rerouting.is_misrouted(record, user_id)


async def events_taken(worker: Siltstone) -> list[tuple[int, LongTermEvent]]:
    """Those of `long-term`, by the partition that they were produced to, or rerouted to."""
    taken: list[tuple[int, LongTermEvent]] = []
    for record in await everything(worker.settings.kafka, worker.topics.long_term):
        try:
            event = long_term.decode(record)
        except BadRecord:
            continue
        if not misrouted(worker, record, event.user_id):
            taken.append((record.partition, event))
    return taken


def applied(data: Path) -> set[tuple[int, uuid.UUID]]:
    """Partition and id of every event that a shard has taken in."""
    found = set()
    for path in data.glob("shards/*/catalog.duckdb"):
        with duckdb.connect(str(path), read_only=True) as db:
            rows = db.execute("SELECT event_id FROM applied").fetchall()
        found |= {(int(path.parent.name), event_id) for (event_id,) in rows}
    return found
