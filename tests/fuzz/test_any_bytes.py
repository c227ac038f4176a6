"""Any bytes on any topic are a dead letter or a record; and what is a record goes all the way."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any, get_args

import orjson
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from schemas.conversations import ConversationRecord
from schemas.errors import BadRecord
from schemas.events import LongTermEvent
from streams.intake import agent as short_term
from streams.memory import agent as long_term
from tests.crash.chatter import Said
from tests.fuzz.mutations import hostile
from tests.fuzz.way import DECODERS, Record, Way, refusal
from tests.support.examples import examples
from tests.tables.windows.test_short_term import JSON

TYPES: dict[Callable[[Any], Any], tuple[type, ...]] = {
    short_term.decode: get_args(ConversationRecord),
    long_term.decode: get_args(LongTermEvent),
}


def said(seed: int) -> Said:
    return hostile(random.Random(seed))


SEEDS = st.integers(0, 2**32)
ANY_BYTES = st.binary(max_size=200) | JSON.map(orjson.dumps) | SEEDS.map(said).map(lambda said: said.value)


@pytest.mark.slow
@examples(500)
@given(ANY_BYTES, st.none() | st.integers(-(2**63), 2**63 - 1))
@example(b"", None)
@example(b"{}", -1)
@example(b'{"type": []}', 0)
def test_any_bytes_are_read_or_refused_with_a_reason(value: bytes, timestamp: Any) -> None:
    """Whatever the Kafka record's own time is."""
    for decode, types in TYPES.items():
        found = outcome(decode, Record("t", 0, b"k", value, timestamp=timestamp))
        assert isinstance(found, (*types, BadRecord))
        assert str(found)


@pytest.mark.slow
@examples(8)
@given(st.lists(st.tuples(SEEDS, st.integers(1, 60)), min_size=1, max_size=3))
def test_what_is_read_goes_all_the_way(
    tmp_path_factory: pytest.TempPathFactory, portions: list[tuple[int, int]]
) -> None:
    """Through windows, promotion, near-copies, overflow, ageing and cleanup, and into the changelogs' rows."""
    with Way(tmp_path_factory.mktemp("way")) as way:
        for seed, count in portions:
            way.take([said(seed + place) for place in range(count)])
            way.age()
        way.assert_all_accounted_for()


def test_of_what_is_mutated_a_tenth_and_more_is_still_read() -> None:
    """And every kind of refusal comes up; else the tests above would try little."""
    mutated = [said(seed) for seed in range(1000)]
    kinds = Counter(refusal(DECODERS[one.topic], Record("t", 0, one.key, one.value)) for one in mutated)
    assert kinds.keys() == {"", "not_json", "not_utf8", "not_an_object", "invalid_fields"}
    assert kinds[""] > 100


def outcome(decode: Callable[[Any], Any], record: Record) -> Any:
    """What it gives, or how it refuses."""
    try:
        return decode(record)
    except BadRecord as error:
        return error
