"""A seeded stream of everything that may be on the topics, in portions: what one worker makes of it is exact.

Messages with retries, some under a wrong key, session ends, explicit memories and commands about those, notes, and
bytes that are no record. What depends on how topics run beside each other (an access of a promoted memory) is left
out: two undisturbed workers might differ there.
"""

from __future__ import annotations

import asyncio
import random
import uuid
from collections.abc import Awaitable, Iterator, Sequence
from typing import Any, NamedTuple

import aiokafka
import orjson
from aiokafka.errors import UnknownError

from schemas.ids import SILTSTONE
from schemas.settings import Settings
from schemas.topics import Topics
from streams.kafka.clients.broker import client_options
from tests.support.making import START, line

USERS = 12
WORDS = [
    "granite",
    "basalt",
    "marble",
    "shale",
    "chalk",
    "slate",
    "gneiss",
    "schist",
    "flint",
    "amber",
    "quartz",
    "opal",
    "topaz",
    "pumice",
    "coral",
    "loess",
]


class Said(NamedTuple):
    """A record of one of the topics (`conversations` or `long_term`), under a key."""

    topic: str
    key: bytes
    value: bytes


def portions(seed: int, count: int, messages: int) -> list[list[Said]]:
    """`count` portions with about `messages` chat messages each; the last one ends every session."""
    chance = random.Random(seed)
    memories = _Memories(chance)
    told = [0] * USERS
    said = []
    for portion in range(count):
        records: list[Said] = [_misrouted(portion)]
        for _ in range(messages):
            n = chance.randrange(USERS)
            records += _message(chance, n, told[n])
            told[n] += 1
            if chance.random() < 0.08:
                records.append(memories.next(portion))
            if chance.random() < 0.004:
                records.append(Said("conversations", f"user-{n}".encode(), chance.randbytes(chance.randrange(40))))
        said.append(records)
    for n in range(USERS):
        end = line(0, f"user-{n}", "user", 20 * told[n], type="session_end")
        said[-1].append(Said("conversations", f"user-{n}".encode(), end))
    return said


def _message(chance: random.Random, n: int, i: int) -> Iterator[Said]:
    """The i-th message of a user; now and then twice."""
    user = f"user-{n}"
    content = f"{chance.choice(WORDS)} {chance.choice(WORDS)}, {user} says for the {i}th time"
    said = Said("conversations", user.encode(), line(i, user, ("user", "assistant")[i % 2], 20 * i, content=content))
    yield said
    if chance.random() < 0.05:
        yield said


def _misrouted(portion: int) -> Said:
    """A message under another's key; alone, because it is rerouted, to behind all that is in the log by then."""
    return Said("conversations", b"somebody", line(0, f"stray-{portion}", "user", 0))


class _Memories:
    """Explicit memories, and commands about those that there are."""

    def __init__(self, chance: random.Random) -> None:
        self._chance, self._made = chance, dict[str, list[uuid.UUID]]()
        self._count = 0

    def next(self, portion: int) -> Said:
        """One command about a user who does not chat."""
        chance, user = self._chance, f"writer-{self._chance.randrange(USERS)}"
        made = self._made.setdefault(user, [])
        self._count += 1
        fields: dict[str, Any] = {}
        kind = chance.choice(["remember", *KINDS]) if made else "remember"
        one = chance.choice(made) if made else None
        if kind == "remember":
            one = uuid.uuid5(SILTSTONE, f"{user} {self._count}")
            made.append(one)
            fields = {"memory_id": str(one), "text": f"{chance.choice(WORDS)} is number {self._count} to {user}"}
        elif kind == "touch":
            fields = {"memory_ids": [str(one)]}
        elif kind in ("link", "unlink"):
            fields = {"source_id": str(one), "target_id": str(chance.choice(made))}
        elif kind == "note":
            kind = "remember"
            note = {"kind": "short_term", "session_id": f"{user}-s", "ttl_seconds": 86_400}
            fields = {**note, "text": f"note {self._count} of portion {portion}"}
        elif kind == "forget_user":
            made.clear()
        else:
            fields = {"memory_id": str(one)}
            if kind == "edit":
                fields["text"] = f"{chance.choice(WORDS)} is what {self._count} says now"
            elif kind == "supersede":
                fields["by"] = str(chance.choice(made))
        event = {
            "type": kind,
            "event_id": str(uuid.uuid5(SILTSTONE, f"event {user} {self._count}")),
            "user_id": user,
            "timestamp": START + self._count * 1000,
            **fields,
        }
        return Said("long_term", user.encode(), orjson.dumps(event))


KINDS = (
    ["touch"] * 6
    + ["link", "note", "pin", "edit"] * 2
    + ["unlink", "unpin", "supersede", "archive", "restore", "remove", "forget", "forget_user"]
)


async def produce(settings: Settings, records: Sequence[Said], *, one_by_one: bool = False) -> None:
    """All of it is acknowledged when this returns.

    What a broker refuses is sent again where it is sent `one_by_one`, and so keeps its order: Tansu answers with an
    error of no name now and then, in its first seconds beside a worker that was there before.
    """
    topics = Topics.with_prefix(settings.kafka.topic_prefix)
    producer = aiokafka.AIOKafkaProducer(**client_options(settings.kafka), linger_ms=0 if one_by_one else 20)
    await producer.start()
    try:
        sent = []
        for record in records:
            sent.append(await producer.send(getattr(topics, record.topic), record.value, key=record.key))
            while one_by_one and await _refused(sent[-1]):
                await asyncio.sleep(0.5)
                sent[-1] = await producer.send(getattr(topics, record.topic), record.value, key=record.key)
        for acknowledged in sent:
            await acknowledged
    finally:
        await producer.stop()


async def _refused(sent: Awaitable[Any]) -> bool:
    try:
        await sent
    except UnknownError:
        return True
    return False
