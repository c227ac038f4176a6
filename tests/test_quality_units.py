"""What a hit is in each unit, and which pieces of evidence are one there."""

from __future__ import annotations

import math

from benchmarks.evidence.measures import places_of, ranks_of
from benchmarks.evidence.units import UNITS, held, pieces_of
from tests.support.hits import hit

#: Two exchanges of session s, one of t between them, and a requested memory without messages.
HITS = [
    hit("ab", "s", 1, 1, 3),
    hit("c", "t", 2, 2, 2),
    hit("", None, 3, 3, 1),
    hit("de", "s", 4, 4, 0),
]
SESSIONS = {"a": "s", "b": "s", "c": "t", "d": "s", "e": "s", "x": "lost"}


def test_each_message_exchange_or_session_has_one_place() -> None:
    """A message has its own, in the order of its exchange; a session that of its best exchange."""
    assert held(HITS, "exchange") == [["a", "b"], ["c"], [], ["d", "e"]]
    assert held(HITS, "message") == [["a"], ["b"], ["c"], ["d"], ["e"]]
    assert held(HITS, "session") == [["s"], ["t"]]


def test_pieces_in_one_unit_are_one_and_lost_ones_count_by_unit() -> None:
    """Of a, b, d in session s and x, y of one that no memory has: five messages, a and b in one exchange."""
    evidence = [frozenset(one) for one in "abdxy"]
    sessions = {**SESSIONS, "y": "lost"}
    exchanges = places_of(held(HITS, "exchange"))
    ranks = {
        unit: ranks_of(pieces_of(evidence, unit, exchanges, sessions), places_of(held(HITS, unit))) for unit in UNITS
    }
    assert ranks == {
        "message": [1, 2, 4, math.inf, math.inf],
        "exchange": [1, 4, math.inf, math.inf],
        "session": [1, math.inf],
    }


def test_a_piece_in_any_of_two_sessions_is_found_in_the_first() -> None:
    evidence = [frozenset("ca"), frozenset("c")]
    pieces = pieces_of(evidence, "session", {}, SESSIONS)
    assert ranks_of(pieces, places_of(held(HITS, "session"))) == [1, 2]
