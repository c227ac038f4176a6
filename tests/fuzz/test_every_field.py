"""Every nasty value in the place of every value of every record: a dead letter, or taken all the way."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import orjson
import pytest

from schemas.events import Promotion, Remember
from schemas.halves import read_json
from tests.crash.chatter import Said
from tests.fuzz.mutations import with_nasty_values
from tests.fuzz.records import event, said
from tests.fuzz.way import Way, readable
from tests.schemas.test_events import EVENTS
from tests.support.making import START

PARTS, A_BATCH = 4, 50


def attempts() -> Iterator[tuple[str, bytes]]:
    """Among few users, who forget and have too much; what makes memories also of users who have nothing else."""
    chance, number = random.Random(0), count()
    for kind in ("message", "session_end", "silence"):
        for value in with_nasty_values(lambda kind=kind: said(chance, kind)):  # type: ignore[misc]
            yield "conversations", value
    for value in with_nasty_values(lambda: said(chance, "message", f"lonely-{next(number)}")):
        yield "conversations", value
    for model in EVENTS:
        for value in with_nasty_values(lambda model=model: event(chance, model)):  # type: ignore[misc]
            yield "long_term", value
    for model in (Promotion, Remember):
        for value in with_nasty_values(lambda model=model: event(chance, model, f"lonely-{next(number)}")):  # type: ignore[misc]
            yield "long_term", value


@pytest.fixture(scope="module")
def taken() -> list[list[Said]]:
    """What is not refused, a message with the end of its session. Raises what a decoder should not."""
    found = []
    for topic, value in attempts():
        record = readable(topic, value)
        if record is not None:
            found.append([record, *ending(record)])
    random.Random(0).shuffle(found)
    return found


def ending(record: Said) -> list[Said]:
    fields = read_json(record.value)
    if "role" not in fields:
        return []
    end = {"type": "session_end", "timestamp": START, **{name: fields[name] for name in ("user_id", "session_id")}}
    return [record._replace(value=orjson.dumps(end))]


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_what_is_in_a_field_stops_nobody(taken: list[list[Said]], tmp_path: Path, part: int) -> None:
    mine = taken[part::PARTS]
    with Way(tmp_path) as way:
        for start in range(0, len(mine), A_BATCH):
            way.take([record for records in mine[start : start + A_BATCH] for record in records])
            way.age()
        way.assert_all_accounted_for()


@pytest.mark.slow
def test_much_of_what_is_tried_is_refused_and_enough_is_not(taken: list[list[Said]]) -> None:
    tried = sum(1 for _ in attempts())
    assert len(taken) > 3000
    assert tried - len(taken) > 5000
