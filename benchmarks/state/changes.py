"""Changes a hundredth of the memories, as chat does: half are new, half are accessed.

Some memories of each user who talks now are accessed. They are spread over the files, and of any age.
"""

from __future__ import annotations

import time
import uuid
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

import aiokafka

from benchmarks.state.filling import PRODUCED_BYTES, Log, promotion, records_of, shares_of, user_of, users_of
from schemas.events import Touch
from schemas.ids import memory_id
from schemas.settings import KafkaSettings
from streams.kafka.clients.broker import client_options

#: The shares of memories that are new, and that are accessed.
NEW_SHARE: Final = 0.005
ACCESSED_SHARE: Final = 0.005
ACCESSED_A_USER: Final = 10


async def add_new(kafka: KafkaSettings, memories: int) -> int:
    """Append promotions to the log; return their number."""
    now, changed = round(time.time() * 1e3), 0
    async with _producer(kafka) as producer:
        for partition, users, share in _partitions(kafka, memories):
            numbers = range(share, share + max(1, round(share * NEW_SHARE)))
            events = [promotion(number, user_of(number, users), now) for number in numbers]
            await Log(kafka).produce(producer, partition, records_of(events))
            changed += len(events)
    return changed


async def access(kafka: KafkaSettings, memories: int) -> int:
    """Append a `touch` event for each user, as a worker does after searches; return the number of memories."""
    now, changed = round(time.time() * 1e3), 0
    async with _producer(kafka) as producer:
        for partition, users, share in _partitions(kafka, memories):
            events = _touches(users, share, now)
            await Log(kafka).produce(producer, partition, records_of(events))
            changed += sum(len(event.memory_ids) for event in events)
    return changed


def _producer(kafka: KafkaSettings) -> aiokafka.AIOKafkaProducer:
    return aiokafka.AIOKafkaProducer(**client_options(kafka), max_batch_size=PRODUCED_BYTES)


def _partitions(kafka: KafkaSettings, memories: int) -> Iterable[tuple[int, Sequence[str], int]]:
    """Each partition, its users, and its number of memories."""
    users = users_of(memories, kafka.partitions)
    return zip(range(kafka.partitions), users, shares_of(memories, users), strict=True)


def _touches(users: Sequence[str], share: int, now: int) -> list[Touch]:
    """Events of users that are spread over the partition, each with memories that are spread too."""
    talking = set(users[:: max(1, round(ACCESSED_A_USER / ACCESSED_SHARE * len(users) / share))])
    theirs = defaultdict[str, list[uuid.UUID]](list)
    for number in range(share):
        if (user := user_of(number, users)) in talking:
            theirs[user].append(memory_id(user, "s", (str(number),)))
    return [
        Touch(event_id=uuid.uuid4(), user_id=user, timestamp=now, memory_ids=ids[:: -(-len(ids) // ACCESSED_A_USER)])
        for user, ids in theirs.items()
    ]
