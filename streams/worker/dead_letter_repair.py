"""Reads dead letters, and checks mended values before they are produced to the source topics again."""

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

#: The maximum number of dead letters on a page of the dashboard.
MOST_LETTERS: Final = 100
#: The maximum number of bytes of a value that are shown. A person reads and mends the value in a form.
SHOWN_BYTES: Final = 256 * 1024
#: The approximate maximum number of characters of all values on a page, and the number of characters of each value
#: that are shown even if the page is full.
ALL_SHOWN_CHARS: Final = 2 << 20
BEGINNING_CHARS: Final = 1_024


@dataclass(frozen=True, slots=True)
class Letter:
    """A record of `dead-letters`, in a form that a person can read.

    `source_topic`, `source_partition` and `source_offset` name the original record. If it was never in the topic, its
    partition and offset are -1. `text` is the value, with replacement characters for invalid UTF-8. If `cut`, `text`
    is only the beginning of the value. `at` is the time at which the dead letter was written (epoch ms).
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
        """Return dead letters, newest first. Raises `BrokerUnavailable`, `NotAllowed` and `TimeoutError`."""
        return cut(await newest_records(self._kafka, self._topic, MOST_LETTERS, _letter))

    async def one(self, partition: int, offset: int) -> Letter | None:
        """Return the dead letter at this offset, or None if there is none. Raises the same errors as `newest`."""
        record = await record_at(self._kafka, self._topic, partition, offset)
        return None if record is None else _letter(record)

    def takes(self, letter: Letter) -> bool:
        """True if the letter can be mended, because workers read its source topic."""
        return letter.source_topic in self._decoders

    def mended(self, letter: Letter, text: str) -> Mended:
        """Return the record to produce, with `text` as its value.

        Raises `BadRecord` if the decoder of the source topic still cannot read the value. A message or event without
        a time gets the time of its dead letter, because the time of the original record is not stored.
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
    """Cut the texts of the letters, so that a page has about `room` characters.

    At least the first `BEGINNING_CHARS` characters of each text are shown.
    """
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
