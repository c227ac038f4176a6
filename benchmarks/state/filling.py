"""Writes millions of memories without embedding a text: the log's records, and the shards that result from them.

Records and shards agree: each shard's position is the end of its partition's log, and the group has committed it. A
worker that opens these shards finds them as if it had written them.
"""

from __future__ import annotations

import gc
import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import aiokafka
import numpy as np
from aiokafka.structs import TopicPartition

from benchmarks.intake import ABOUT_ME, SMALL_TALK
from schemas.events import LongTermEvent, Parts, Promotion
from schemas.ids import event_id, memory_id
from schemas.settings import KafkaSettings, LifecycleSettings, LongTermSettings
from schemas.topics import Topics, key_of, partition_of
from streams.doors.cli.process import COLLECT_AFTER
from streams.kafka.clients.broker import client_options
from streams.models.embedding.embedders import UseEmbedder
from tables.memories.shard import Shard
from tables.vectors.index import Vectors

SEED: Final = 20_250_301
#: The worker's default model, so that the worker opens these shards.
MODEL: Final = UseEmbedder.name
DIMENSION: Final = UseEmbedder.dimension
MEMORIES_A_USER: Final = 100
#: Users who talk at the same time, and memories of one session: a user's rows are spread, as after months of chat.
TALKING: Final = 1_000
A_SESSION: Final = 5
BATCH: Final = 1_000
#: The memories were made within this many days before now, and all are active.
DAYS: Final = 5
DAY_MS: Final = 86_400_000
PRODUCED_BYTES: Final = 900_000

OPENINGS: Final = (
    "User: I have booked table {n}, and there is more to say:",
    "User: My parcel number is {n}, as I said when we talked about it:",
    "User: 我在{n}号楼上班，还想说：",
    "User: I like what they have at shop {n}, but not everything of it:",
)
#: A text goes on with `WORDS_A_TEXT` of these words, which are from chat.
WORDS: Final = sorted({word for pair in (*SMALL_TALK, *ABOUT_ME) for said in pair for word in said.split()})
WORDS_A_TEXT: Final = 16


def users_of(memories: int, partitions: int) -> list[list[str]]:
    """Names of users, by partition; a hundred memories for each."""
    names: list[list[str]] = [[] for _ in range(partitions)]
    for number in range(max(partitions * 4, memories // MEMORIES_A_USER)):
        names[partition_of(user := f"user-{number}", partitions)].append(user)
    return names


def shares_of(memories: int, users: Sequence[Sequence[str]]) -> list[int]:
    """The number of memories of each partition, by its share of users; the last one has the rest."""
    of_all = sum(map(len, users))
    shares = [memories * len(each) // of_all for each in users]
    shares[-1] += memories - sum(shares)
    return shares


def user_of(number: int, users: Sequence[str]) -> str:
    """A memory's user: sessions of `A_SESSION` memories, `TALKING` of them interleaved; all users are as frequent."""
    turn, lane = divmod(number, TALKING)
    return users[(turn // A_SESSION * TALKING + lane) * 2_654_435_761 % len(users)]


def promotion(number: int, user: str, now: int) -> Promotion:
    """A memory that was made some days before `now` (epoch ms). Its number is the id of its only message."""
    opening, rest = OPENINGS[number % len(OPENINGS)], " ".join(random.Random(number).choices(WORDS, k=WORDS_A_TEXT))
    said, at = f"{opening.format(n=number)} {rest}\nAssistant: Noted.", now - number * 7_919_000 % (DAYS * DAY_MS)
    identity = memory_id(user, "s", (str(number),))
    return Promotion(
        event_id=event_id("promotion", identity),
        user_id=user,
        timestamp=at,
        memory_id=identity,
        session_id="s",
        text=said,
        message_ids=[str(number)],
        importance=85 + number % 16,
        started_at=at,
        parts=Parts(reason="all", total=800),
    )


def batches(share: int, users: Sequence[str], now: int) -> Iterator[list[Promotion]]:
    """One partition's memories in the order of its log."""
    for first in range(0, share, BATCH):
        numbers = range(first, min(first + BATCH, share))
        yield [promotion(number, user_of(number, users), now) for number in numbers]


def unit_vectors(chance: np.random.Generator, count: int) -> Vectors:
    """Random unit vectors, float32[n, d]: no two are near each other."""
    vectors = chance.standard_normal((count, DIMENSION), np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors


class Log:
    """Writes `long-term` in whole batches, and the group's offsets behind it."""

    def __init__(self, kafka: KafkaSettings) -> None:
        self._kafka, self.topic = kafka, Topics.with_prefix(kafka.topic_prefix).long_term
        self.ends = dict.fromkeys(range(kafka.partitions), 0)
        self.bytes = 0

    async def produce(
        self, producer: aiokafka.AIOKafkaProducer, partition: int, values: Sequence[tuple[bytes, bytes]]
    ) -> int:
        """Produce keys and values until they are acknowledged; return the end of the partition's log."""
        rest = list(reversed(values))
        while rest:
            batch = producer.create_batch()
            while rest and batch.append(key=rest[-1][0], value=rest[-1][1], timestamp=None) is not None:
                self.bytes += sum(map(len, rest.pop()))
            batch.close()
            sent = await (await producer.send_batch(batch, self.topic, partition=partition))
            self.ends[partition] = sent.offset + batch.record_count()
        return self.ends[partition]

    async def commit(self) -> None:
        """Commit the ends, as if the group had read everything."""
        consumer = aiokafka.AIOKafkaConsumer(
            **client_options(self._kafka), group_id=self._kafka.group_id, enable_auto_commit=False
        )
        async with consumer:
            offsets = {TopicPartition(self.topic, p): end for p, end in self.ends.items() if end}
            consumer.assign(list(offsets))
            await consumer.commit(offsets)


def records_of(events: Sequence[LongTermEvent]) -> list[tuple[bytes, bytes]]:
    """Keys and values, as the worker writes them."""
    return [(key_of(event.user_id), event.model_dump_json().encode()) for event in events]


async def fill(kafka: KafkaSettings, shards: Path | None, memories: int) -> dict[str, float]:
    """Write memories into the log, and into shards if their folder is given; return what it took."""
    gc.set_threshold(*COLLECT_AFTER)
    users, now, began = users_of(memories, kafka.partitions), round(time.time() * 1e3), time.monotonic()
    chance, log, applying = np.random.default_rng(SEED), Log(kafka), 0.0
    async with aiokafka.AIOKafkaProducer(**client_options(kafka), max_batch_size=PRODUCED_BYTES) as producer:
        for partition, share in enumerate(shares_of(memories, users)):
            shard = None if shards is None else _opened(partition, shards)
            for events in batches(share, users[partition], now):
                end = await log.produce(producer, partition, records_of(events))
                if shard is not None:
                    vectors = unit_vectors(chance, len(events))
                    started = time.monotonic()
                    by_event = {event.event_id: vector for event, vector in zip(events, vectors, strict=True)}
                    shard.apply(events, by_event, now, end)
                    applying += time.monotonic() - started
            if shard is not None:
                started = time.monotonic()
                while shard.rows.fill(BATCH):
                    pass
                shard.close()
                applying += time.monotonic() - started
    await log.commit()
    return {
        "fill_s": round(time.monotonic() - began, 1),
        "fill_store_s": round(applying, 1),
        "log_bytes_per_memory": round(log.bytes / memories),
    }


def _opened(partition: int, shards: Path) -> Shard:
    return Shard(partition, shards / str(partition), MODEL, DIMENSION, LongTermSettings(), LifecycleSettings())
