"""The fast lane of `conversations` takes a record or leaves it; what it takes, it reads as the models do."""

from __future__ import annotations

import random
from functools import partial
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from schemas.conversations import ChatMessage
from schemas.exchanges import Message
from schemas.fields import MAX_CONTENT_BYTES
from schemas.plain_messages import MAX_PLAIN_BYTES, plain_message
from streams.intake.agent import decode
from tests.fuzz.mutations import mutated, with_nasty_values
from tests.fuzz.records import said
from tests.streams.intake.long_log import Logged, long_log
from tests.support.examples import examples
from tests.support.making import START

PLAIN: dict[str, Any] = {
    "user_id": "u",
    "session_id": "s",
    "message_id": "m",
    "role": "user",
    "content": "hi",
    "timestamp": START,
}
OPTIONAL = ("message_id", "emotion", "name", "agent_id")
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=6)
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner))
TIMES = (
    st.datetimes().map(str)
    | st.datetimes().map(lambda moment: f"{moment.isoformat()}Z")
    | st.times().map(lambda time: f"2026-01-01T{time.isoformat()}+05:30")
    | st.integers(START - 10**12, START + 10**13)
    | st.floats(allow_nan=False)
    | st.sampled_from(["2026-01-01", "20260101T120000", "2026-W01-1", "24:00", "2026-01-01t00:00:00z"])
)
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        **{name: st.text(max_size=5) | JSON for name in ("user_id", "session_id", *OPTIONAL, "content", "metadata")},
        "role": st.sampled_from(["assistant", "system", "tool", "USER", ""]) | JSON,
        "timestamp": TIMES | JSON,
        "type": st.sampled_from(["session_end", "silence", "message", None]),
        "run_id": JSON,
        "created_at": TIMES | JSON,
        "x": JSON,
    },
)


def taken(value: bytes | None) -> bool:
    """Whether the lane takes it; then the models read the same."""
    plain = plain_message(value)
    if plain is None:
        return False
    read = decode(Logged("conversations", 0, 0, START, b"u", value, ()))
    assert isinstance(read, ChatMessage)
    assert plain == (read.user_id, read.session_id, Message.of(read))
    assert orjson.dumps(plain, default=repr) == orjson.dumps(
        (read.user_id, read.session_id, Message.of(read)), default=repr
    )
    assert type(plain[2].timestamp) is int
    return True


@pytest.mark.slow
@examples(2_000, few=100)
@given(FIELDS, st.sets(st.sampled_from(sorted(PLAIN))), st.booleans())
def test_what_it_takes_it_reads_as_the_models_do(fields: dict[str, Any], without: set[str], indented: bool) -> None:
    record = {name: value for name, value in PLAIN.items() if name not in without} | fields
    try:
        value = orjson.dumps(record, option=orjson.OPT_INDENT_2 if indented else None)
    except TypeError:  # an integer or a text that no JSON of orjson's has
        return
    taken(value)


@examples(500)
@given(st.randoms(use_true_random=False))
def test_what_it_takes_of_hostile_records_it_reads_as_the_models_do(chance: random.Random) -> None:
    fields = said(chance, chance.choice(("message", "message", "message", "session_end", "silence")))
    for name in ("metadata", "mood"):
        if chance.random() < 0.8:
            fields.pop(name, None)
    taken(orjson.dumps(fields))
    taken(mutated(chance, fields))


def test_nasty_values_in_any_place_are_read_as_the_models_do() -> None:
    assert sum(map(taken, with_nasty_values(partial(dict, PLAIN)))) > 20


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"message_id": None},
        {"timestamp": "2026-01-01T00:00:00.123Z"},
        {"timestamp": "2026-01-01T00:00:00.123456+02:00"},
        {"timestamp": "2026-01-01"},
        {"emotion": "sad", "name": "小明", "agent_id": "bot"},
        {"content": "a <b> c"},
        {"role": "assistant", "content": "【1】"},
        {"content": "🪨" * (MAX_CONTENT_BYTES // 4)},
        {"role": "tool"},
    ],
    ids=str,
)
def test_it_takes_plain_messages(changes: dict[str, Any]) -> None:
    assert taken(orjson.dumps(PLAIN | changes))


@pytest.mark.parametrize(
    "changes",
    [
        {"metadata": {"a": 1e16}},
        {"mood": 1},
        {"type": "session_end"},
        {"content": "x" * (MAX_CONTENT_BYTES // 4 + 1)},
        {"content": ""},
        {"content": "\u3000"},
        {"content": ["x"]},
        {"content": None},
        {"role": "developer"},
        {"role": "assistant", "content": "<think>x</think>y"},
        {"role": "assistant", "content": " <think>x</think>y"},
        {"content": "x \ue200cite\ue202y\ue201"},
        {"content": "x【1†y】"},
        {"user_id": ""},
        {"name": "x" * 257},
        {"timestamp": START / 1},
        {"timestamp": START // 1000},
        {"run_id": "s"},
    ],
    ids=lambda changes: str(changes)[:40],
)
def test_it_leaves_the_rest_to_the_models(changes: dict[str, Any]) -> None:
    assert plain_message(orjson.dumps(PLAIN | changes)) is None


def test_it_leaves_what_is_too_long_or_nothing() -> None:
    assert plain_message(None) is None
    assert plain_message(orjson.dumps(PLAIN) + b" " * MAX_PLAIN_BYTES) is None


def test_of_equal_fields_it_takes_the_last() -> None:
    assert taken(orjson.dumps(PLAIN)[:-1] + b', "content": "the last"}')


def test_it_takes_most_of_a_long_log() -> None:
    log = list(long_log(3_000))
    assert sum(taken(record.value) for record in log) > 0.6 * len(log)
