"""What becomes a dead letter, and what it takes to see that something has to."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from typing import Any

import orjson
import pytest
from aiokafka.errors import MessageSizeTooLargeError

from schemas.errors import BadRecord
from schemas.record_values import MAX_FIELDS, json_object
from schemas.topic_specs import MAX_RECORD_BYTES, MAX_VALUE_BYTES
from streams.intake import agent as short_term
from streams.kafka.commit.outbox import Outbox
from streams.kafka.commit.sends import RefusedRecord
from streams.kafka.dead_letters import LEAST_VALUE_BYTES, DeadLetters
from streams.memory import agent as long_term
from streams.telemetry.metrics import Metrics, labelled
from tests.fuzz.way import Log, Record
from tests.support.making import START, line


async def dead(key: bytes | None, value: bytes | None) -> Record:
    """The dead letter, as a broker takes it."""
    log, outbox = Log(), Outbox()
    outbox.connect(log)  # type: ignore[arg-type]
    DeadLetters(outbox, "dead-letters", Metrics()).send(Record("t", 7, key, value), BadRecord("kind", "reason"))
    await outbox.deliver()
    (letter,) = log.records["dead-letters"]
    assert dict(letter.headers)["source.offset"] == b"7"
    return letter


@pytest.mark.parametrize(("key", "value"), [(b"k", b"{oops"), (None, b"x"), (b"k", None), (b"\xff", b"\xff\0")])
async def test_a_dead_letter_is_the_record_as_it_was(key: bytes | None, value: bytes | None) -> None:
    letter = await dead(key, value)
    assert (letter.key, letter.value) == (key, value)


async def test_a_record_without_key_and_value_is_buried_under_an_empty_key() -> None:
    """aiokafka refuses to send it as it was."""
    letter = await dead(None, None)
    assert (letter.key, letter.value) == (b"", None)


async def test_a_dead_letter_that_is_refused_is_cut_and_one_that_is_refused_again_is_given_up() -> None:
    """A topic may take less than we ask for. Its coordinates are in the log of the worker."""
    log, outbox, metrics = Log(), Outbox(), Metrics()
    outbox.connect(log)  # type: ignore[arg-type]
    letters = DeadLetters(outbox, "dead-letters", metrics)
    letters.send(Record("t", 7, b"k", b"x" * MAX_VALUE_BYTES), BadRecord("kind", "reason"))
    for _ in range(2):
        await outbox.deliver()
        letter = log.records["dead-letters"][-1]
        error = MessageSizeTooLargeError()
        letters.keep_refused(RefusedRecord("dead-letters", letter.key, letter.value, letter.headers, error))
    await outbox.deliver()
    assert [len(letter.value or b"") for letter in log.records["dead-letters"]] == [
        MAX_VALUE_BYTES,
        LEAST_VALUE_BYTES,
    ]
    assert labelled(metrics.refused) == {("dead-letters", "MessageSizeTooLargeError"): 2}


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"k", b"x" * MAX_RECORD_BYTES),
        (b"k" * MAX_RECORD_BYTES, b"x"),
        (b"k" * MAX_VALUE_BYTES, b"x" * MAX_VALUE_BYTES),
    ],
)
async def test_of_what_is_too_large_as_much_is_buried_as_a_broker_takes(key: bytes, value: bytes) -> None:
    letter = await dead(key, value)
    assert letter.key
    assert key.startswith(letter.key)
    assert letter.value == value[:MAX_VALUE_BYTES]


def test_what_is_larger_than_can_be_sent_on_is_refused() -> None:
    """A broker that unpacks nothing lets a compressed record of any size through."""
    bomb = gzip.decompress(gzip.compress(b" " * (MAX_VALUE_BYTES + 1)))
    with pytest.raises(BadRecord, match=f"{MAX_VALUE_BYTES + 1} bytes: at most {MAX_VALUE_BYTES}") as refused:
        json_object(bomb)
    assert refused.value.kind == "too_large"
    assert json_object(b"{}" + b" " * (MAX_VALUE_BYTES - 2)) == {}


def test_an_object_may_have_ten_thousand_fields() -> None:
    fields = {str(number): 0 for number in range(MAX_FIELDS)}
    assert json_object(orjson.dumps(fields)) == fields
    with pytest.raises(BadRecord, match="10001 fields"):
        json_object(orjson.dumps({**fields, "one": "more"}))


def filled(before: bytes, filling: bytes, after: bytes) -> bytes:
    """As large as a value may be."""
    return before + filling * ((MAX_VALUE_BYTES - len(before) - len(after)) // len(filling)) + after


EVENT = b'{"event_id": "6ba7b810-9dad-11d1-80b4-00c04fd430c8", "user_id": "u", "timestamp": %d, ' % START
MESSAGE = line(1, "u", "user", 0)[:-1] + b", "


@pytest.mark.slow
@pytest.mark.parametrize("decode", [short_term.decode, long_term.decode])
@pytest.mark.parametrize(
    "value",
    [
        filled(b"", b"[", b""),
        filled(b"", b'{"a":', b""),
        filled(b"[", b"0,", b"0]"),
        filled(b'{"a": ', b"1", b"}"),
        filled(b'{"a": "', b"\\u0000", b'"}'),
        filled(b'{"a": "', "记".encode(), b'\xff"}'),
        filled(MESSAGE + b'"content": "', b"x", b'"}'),
        filled(MESSAGE + b'"metadata": {', b'"a": [[]], ', b'"b": 0}}'),
        filled(MESSAGE, b'"mood": 1, ', b'"b": 0}'),
        filled(MESSAGE + b'"timestamp": "2026-01-01T00:00:00.', b"9", b'"}'),
        MESSAGE + b", ".join(b'"%d": %b' % (i, b"[" * 250 + b"]" * 250) for i in range(MAX_FIELDS - 100)) + b"}",
        filled(EVENT + b'"type": "touch", "memory_ids": [', b"1, ", b"1]}"),
        filled(EVENT + b'"type": "touch", "memory_ids": [', b'"00000000-0000-0000-0000-000000000001", ', b"1]}"),
        filled(EVENT + b'"type": "promotion", "message_ids": [', b"1, ", b'1], "speakers": [1]}'),
        filled(EVENT + b'"type": "remember", "text": "x", "supersedes": [', b"1, ", b"1]}"),
        filled(EVENT + b'"type": "remember", "text": "x", "message_ids": [', b"1, ", b"1]}"),
        filled(EVENT + b'"type": "', b"x", b'"}'),
    ],
    ids=lambda value: repr(value[-40:]) if isinstance(value, bytes) else "",
)
def test_of_the_largest_records_little_is_kept_or_said(decode: Callable[[Any], Any], value: bytes) -> None:
    """Of equal fields the last one counts, so that some are small messages."""
    try:
        left = repr(decode(Record("t", 0, b"u", value)))
    except BadRecord as refused:
        left = str(refused)
    assert 0 < len(left) < len(value) / 8
