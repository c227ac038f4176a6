"""Dead letters: read them, mend them, and check them for producing to the topics that they came from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import orjson

from schemas.errors import BadRecord
from schemas.settings import KafkaSettings
from schemas.times import iso
from schemas.topics import Topics
from streams.intake import agent as short_term
from streams.kafka.clients.newest_records import newest_records, record_at
from streams.memory import agent as long_term
from streams.summaries import requests as summary_requests

#: On one page.
MOST_LETTERS: Final = 100
#: Of one value: a person reads and mends it in a form.
SHOWN_BYTES: Final = 256 * 1024
#: Of all values of a page together, and the least of each.
ALL_SHOWN_CHARS: Final = 2 << 20
BEGINNING_CHARS: Final = 1_024


@dataclass(frozen=True, slots=True)
class Letter:
    """A record of `dead-letters`, as a person reads it.

    `source_…` is where it came from; the offset is -1 if it was never in a topic. `text` is the value, shortened if
    `cut`, with replacement characters for invalid UTF-8. `at` is when it was written (epoch ms).
    """

    partition: int
    offset: int
    at: int
    source_topic: str
    source_partition: int
    source_offset: int
    error_type: str
    error_message: str
    key: str
    text: str
    cut: bool


class Mended(NamedTuple):
    """A mended record to produce: topic, user id and bytes."""

    topic: str
    user_id: str
    value: bytes


class _Given(NamedTuple):
    """A record in the form that a topic's decoder reads."""

    value: bytes
    timestamp: int


class Repairing:
    """Reads and mends the records of `dead-letters`."""

    def __init__(self, kafka: KafkaSettings, topics: Topics) -> None:
        self._kafka, self._topic = kafka, topics.dead_letters
        self._decoders: Mapping[str, Callable[[Any], Any]] = {
            topics.conversations: short_term.decode,
            topics.long_term: long_term.decode,
            topics.summary_requests: summary_requests.decode,
        }

    async def newest(self) -> list[Letter]:
        """Return letters, newest first. Raises `BrokerUnavailable`, `NotAllowed` and `TimeoutError`."""
        return cut(await newest_records(self._kafka, self._topic, MOST_LETTERS, _letter))

    async def one(self, partition: int, offset: int) -> Letter | None:
        """Return a letter, or None. Raises as `newest` does."""
        record = await record_at(self._kafka, self._topic, partition, offset)
        return None if record is None else _letter(record)

    def takes(self, letter: Letter) -> bool:
        """True if the letter can be mended: workers read its source topic."""
        return letter.source_topic in self._decoders

    def mended(self, letter: Letter, text: str) -> Mended:
        """Return the record to produce. Raises `BadRecord` if the topic's own decoder still cannot read it.

        A message without a time gets that of its dead letter: the original record's time is not kept.
        """
        decode = self._decoders.get(letter.source_topic)
        if decode is None:
            raise BadRecord("not_ours", f"this worker does not read topic {letter.source_topic}")
        value = text.encode()
        read = decode(_Given(value, letter.at))
        fields = orjson.loads(value)
        if fields.keys().isdisjoint(("timestamp", "created_at")) and letter.source_topic.endswith(
            ("conversations", "long-term")
        ):
            value = orjson.dumps({**fields, "timestamp": iso(letter.at)})
        return Mended(letter.source_topic, read.user_id, value)


def cut(letters: Sequence[Letter], room: int = ALL_SHOWN_CHARS) -> list[Letter]:
    """Cut texts so that a page has about `room` characters; each keeps its first `BEGINNING_CHARS`."""
    found = []
    for letter in letters:
        shown = max(BEGINNING_CHARS, room)
        room -= len(letter.text)
        found.append(replace(letter, text=letter.text[:shown], cut=True) if len(letter.text) > shown else letter)
    return found


def _letter(record: Any) -> Letter:
    headers = {name: value.decode("utf-8", "replace") for name, value in record.headers if value is not None}
    value = record.value or b""
    return Letter(
        partition=record.partition,
        offset=record.offset,
        at=record.timestamp,
        source_topic=headers.get("source.topic", "?"),
        source_partition=_number(headers.get("source.partition")),
        source_offset=_number(headers.get("source.offset")),
        error_type=headers.get("error.type", "?"),
        error_message=headers.get("error.message", ""),
        key=(record.key or b"")[:256].decode("utf-8", "replace"),
        text=value[:SHOWN_BYTES].decode("utf-8", "replace"),
        cut=len(value) > SHOWN_BYTES,
    )


def _number(text: str | None) -> int:
    return int(text) if text and text.removeprefix("-").isdecimal() else -1
