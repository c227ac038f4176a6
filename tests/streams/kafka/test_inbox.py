"""What an agent is given of a fetched batch, and what becomes of the rest."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from schemas.errors import BadRecord
from schemas.topics import REROUTED_HEADER, partition_of
from streams.kafka.commit.outbox import Outbox
from streams.kafka.dead_letters import DeadLetters
from streams.kafka.inbox import Inbox, readable
from streams.kafka.rerouting import Rerouting
from streams.telemetry.metrics import Metrics, labelled
from tests.fuzz.way import Log, Record

PARTITIONS = 4
HERE = partition_of("ada", PARTITIONS)
BAD = b"?"


class Word(NamedTuple):
    user_id: str
    text: bytes


def decode(record: Any) -> Word:
    """`user:text`."""
    if record.value == BAD:
        raise BadRecord("kind", "reason")
    user, text = record.value.split(b":")
    return Word(user.decode(), text)


class Topic:
    """A topic with an inbox, and what the inbox posts."""

    def __init__(self) -> None:
        self.log, self.outbox, self.metrics = Log(), Outbox(), Metrics()
        self.outbox.connect(self.log)  # type: ignore[arg-type]
        self.inbox = Inbox(
            decode,
            DeadLetters(self.outbox, "dead", self.metrics),
            Rerouting(self.outbox, self.metrics, PARTITIONS),
        )

    async def posted(self) -> list[tuple[str, bytes | None, bytes | None]]:
        await self.outbox.deliver()
        return [(name, record.key, record.value) for name, records in self.log.records.items() for record in records]


@pytest.fixture
def topic() -> Topic:
    return Topic()


def batch(*values: bytes, key: bytes = b"ada", headers: Any = ()) -> list[Record]:
    return [Record("t", offset, key, value, headers=headers, partition=HERE) for offset, value in enumerate(values)]


def texts(found: Any) -> list[tuple[int, bytes]]:
    return [(record.offset, said.text) for record, said in found]


async def test_it_gives_what_the_partition_has_in_the_order_of_the_log(topic: Topic) -> None:
    assert texts(topic.inbox.read(batch(b"ada:1", b"ada:2", b"ada:1"))) == [(0, b"1"), (1, b"2"), (2, b"1")]
    assert await topic.posted() == []


async def test_what_cannot_be_read_is_a_dead_letter_and_those_around_it_are_given(topic: Topic) -> None:
    assert texts(topic.inbox.read(batch(b"ada:1", BAD, b"ada:2"))) == [(0, b"1"), (2, b"2")]
    assert await topic.posted() == [("dead", b"ada", BAD)]
    assert labelled(topic.metrics.dead_letters) == {("t", "kind"): 1}


async def test_what_is_misrouted_is_posted_with_the_right_key_and_not_given(topic: Topic) -> None:
    assert texts(topic.inbox.read(batch(b"ada:1", b"bob:2", b"ada:3"))) == [(0, b"1"), (2, b"3")]
    assert await topic.posted() == [("t", b"bob", b"bob:2")]
    assert labelled(topic.metrics.rerouted) == {("t",): 1}


async def test_what_was_rerouted_before_is_given_wherever_it_lies(topic: Topic) -> None:
    """Else two workers that count partitions differently would send it to each other for ever."""
    rerouted = batch(b"bob:1", headers=[(REROUTED_HEADER, b"1")])
    assert texts(topic.inbox.read(rerouted)) == [(0, b"1")]
    assert await topic.posted() == []


async def test_another_fault_than_a_bad_record_is_raised(topic: Topic) -> None:
    """A batch that raised is not acknowledged; a dead letter would pass over it."""
    with pytest.raises(ValueError, match="unpack"):
        list(topic.inbox.read(batch(b"ada:1", b"no colon")))


async def test_what_is_read_again_is_the_same_and_posts_nothing(topic: Topic) -> None:
    records = batch(b"ada:1", BAD, b"bob:2", b"ada:3")
    assert texts(topic.inbox.read_again(records)) == [(0, b"1"), (3, b"3")]
    assert await topic.posted() == []
    assert not labelled(topic.metrics.dead_letters)


def test_what_is_readable_may_be_misrouted() -> None:
    assert texts(readable(decode, batch(b"ada:1", BAD, b"bob:2"))) == [(0, b"1"), (2, b"2")]
