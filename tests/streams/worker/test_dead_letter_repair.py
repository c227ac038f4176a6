"""Dead letters, mended: what is right now goes to the topic that it came from, under its user's key."""

from __future__ import annotations

import uuid
import weakref
from typing import Any

import orjson
import pytest

from schemas.errors import BadRecord
from schemas.settings import Settings
from schemas.times import iso
from schemas.topics import Topics
from streams.kafka.bulk import producing
from streams.kafka.clients.broker import ensure_topics
from streams.kafka.clients.newest_records import newest_records
from streams.worker.dead_letter_repair import Letter, Repairing, cut
from tests.support.making import START

TOPICS = Topics.with_prefix("siltstone.")


@pytest.fixture
def repairing() -> Repairing:
    return Repairing(Settings.load().kafka, TOPICS)


def letter(topic: str = TOPICS.conversations, **fields: Any) -> Letter:
    return Letter(
        **{
            "partition": 0,
            "offset": 3,
            "at": START,
            "source_topic": topic,
            "source_partition": 1,
            "source_offset": 7,
            "error_type": "not_json",
            "error_message": "the value is not JSON",
            "key": "ann",
            "text": "{",
            "cut": False,
            **fields,
        }
    )


def test_a_message_is_produced_again_to_its_topic_for_its_user(repairing: Repairing) -> None:
    said = {"user_id": "ann", "session_id": "s", "role": "user", "content": "hi", "timestamp": "2026-02-01T00:00:00Z"}
    mended = repairing.mended(letter(), orjson.dumps(said).decode())
    assert (mended.topic, mended.user_id, orjson.loads(mended.value)) == (TOPICS.conversations, "ann", said)


def test_a_message_without_a_time_gets_that_of_its_dead_letter(repairing: Repairing) -> None:
    """The record's own is lost, and that of producing it again says nothing."""
    mended = repairing.mended(letter(), '{"user_id": "ann", "session_id": "s", "role": "user", "content": "hi"}')
    assert orjson.loads(mended.value)["timestamp"] == iso(START)
    command = {"type": "forget_user", "event_id": str(uuid.uuid4()), "user_id": "ann"}
    mended = repairing.mended(letter(TOPICS.long_term), orjson.dumps(command).decode())
    assert orjson.loads(mended.value)["timestamp"] == iso(START)


@pytest.mark.parametrize(
    ("text", "kind"), [("{", "not_json"), ("[]", "not_an_object"), ('{"user_id": "ann"}', "invalid_fields")]
)
def test_what_still_cannot_be_read_says_why(text: str, kind: str, repairing: Repairing) -> None:
    with pytest.raises(BadRecord) as caught:
        repairing.mended(letter(), text)
    assert caught.value.kind == kind


def test_a_page_shows_as_much_as_a_page_may_have() -> None:
    """A hundred letters of a quarter of a megabyte each would be one of 25."""
    letters = [letter(offset=n, text=str(n) * size) for n, size in enumerate((10, 4_000, 5_000, 9, 2_000, 500))]
    shown = cut(letters, 6_000)
    assert [len(one.text) for one in shown] == [10, 4_000, 1_990, 9, 1_024, 500]
    assert [one.cut for one in shown] == [False, False, True, False, True, False]
    assert cut(letters) == letters


async def test_of_what_lies_in_the_topic_no_more_is_held_than_is_shown(settings: Settings) -> None:
    """Whatever that is: a hundred of each partition, of 8 MiB each, were in memory at once."""
    await ensure_topics(settings.kafka)
    topic, held, most = f"{settings.kafka.topic_prefix}dead-letters", weakref.WeakSet[Shown](), list[int]()

    def shown(record: Any) -> Shown:
        held.add(one := Shown(record.value))
        most.append(len(held))
        return one

    async with producing(settings.kafka, topic) as producer:
        for n in range(60):
            await producer.send(b"u", b"%d" % n)
            await producer.send(b"other", b"%d" % n)
    found = await newest_records(settings.kafka, topic, 10, shown)
    assert len(most) >= 20
    assert max(most) <= 2 * 10 + 1, "those that were found, and those that take their place"
    assert {one.value for one in found} <= {b"%d" % n for n in range(50, 60)}
    assert len(found) == 10


class Shown:
    def __init__(self, value: bytes) -> None:
        self.value = value


def test_what_is_not_read_here_is_not_mended_here(repairing: Repairing) -> None:
    other = letter(TOPICS.transitions)
    assert (repairing.takes(letter()), repairing.takes(other)) == (True, False)
    with pytest.raises(BadRecord):
        repairing.mended(other, "{}")
