"""Accesses of some seconds become one event a user."""

from __future__ import annotations

import uuid

from streams.recall.accesses import MOST_MEMORIES, Accesses
from tests.support.making import START

ONE, TWO, THREE = (uuid.UUID(int=number) for number in (1, 2, 3))


def test_a_users_searches_are_one_event_that_says_how_often_each_memory_was_returned() -> None:
    accesses = Accesses()
    accesses.note("u", [ONE, TWO], START + 2)
    accesses.note("v", [THREE], START)
    accesses.note("u", [ONE, THREE], START + 1)
    mine, theirs = accesses.take()
    assert (mine.user_id, mine.memory_ids, mine.times, mine.timestamp) == (
        "u",
        [ONE, TWO, THREE],
        [2, 1, 1],
        START + 2,
    )
    assert (theirs.user_id, theirs.memory_ids, theirs.times) == ("v", [THREE], [])
    assert accesses.take() == []


def test_an_event_names_a_bounded_number_of_memories() -> None:
    accesses = Accesses()
    ids = [uuid.UUID(int=number) for number in range(1, MOST_MEMORIES + 3)]
    accesses.note("u", ids, START)
    accesses.note("u", ids[-1:], START)
    first, rest = accesses.take()
    assert first.memory_ids + rest.memory_ids == ids
    assert (first.times, rest.times) == ([], [1, 2])
    assert first.event_id != rest.event_id
