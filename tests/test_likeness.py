"""Pairs of memories that belong together, and the cosines that keep as many of the others."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import numpy as np
import pytest

from benchmarks.evidence.sets import Question
from benchmarks.likeness import OF_USE, Cosines, Pairs, equal_share, figures, neighbours, same_evidence
from schemas.embedding_models import USE
from schemas.memories import Memory
from tests.support.making import memory_of

NUMBERS = count()


def memory(session: str, *message_ids: str) -> Memory:
    return replace(memory_of(80), session_id=session, message_ids=message_ids, seq=next(NUMBERS))


MEMORIES = [memory("s", "a", "b"), memory("t", "c"), memory("s", "d"), memory("s", "e")]


def about(*groups: str) -> Question:
    """A question with these pieces of evidence, each of which is any message of a group."""
    return Question("u", "?", "fact", tuple(frozenset(group) for group in groups))


@pytest.mark.parametrize(
    ("question", "pairs"),
    [
        (about("a", "d"), [(0, 2)]),
        (about("e", "c", "b"), [(0, 1), (0, 3), (1, 3)]),
        (about("a", "b"), []),  # one memory
        (about("ab", "c"), [(0, 1)]),
        (about("ad", "c"), []),  # of two memories either is enough
        (about("a", "x"), []),  # a message that became no memory
    ],
)
def test_evidence_of_a_question_belongs_together(question: Question, pairs: list[tuple[int, int]]) -> None:
    assert list(same_evidence(MEMORIES, [question])) == pairs


def test_neighbours_follow_each_other_in_a_session() -> None:
    assert list(neighbours(MEMORIES)) == [(0, 2), (2, 3)]


def floats(*values: float) -> Cosines:
    return np.array(values, np.float32)


#: The cosines of pairs that do not belong together.
EVEN = floats(*np.linspace(0, 1, 1001))
NARROW = floats(*np.linspace(0.8, 1, 1001))


def test_the_other_models_cosine_keeps_the_same_share() -> None:
    assert equal_share(0.35, EVEN, NARROW) == pytest.approx(0.87, abs=0.001)
    assert equal_share(2.0, EVEN, NARROW) == pytest.approx(1.0)


def test_shares_are_of_each_kind_of_pairs() -> None:
    """Those that belong together do not move the cosine."""
    evidence = np.arange(1003) > 1000
    pairs = Pairs(
        use=np.append(EVEN, floats(0.9, 0.1)),
        other=np.append(NARROW, floats(0.98, 0.98)),
        evidence=evidence,
        neighbours=np.zeros_like(evidence),
    )
    rows = figures(pairs)
    assert [row["use"] for row in rows] == [*OF_USE]
    assert rows[1]["other"] == pytest.approx(0.88, abs=0.001)
    assert rows[1]["apart_use"] == pytest.approx(rows[1]["apart_other"], abs=0.002)
    assert (rows[1]["evidence_use"], rows[1]["evidence_other"], "neighbours_use" in rows[1]) == (0.5, 1.0, False)


def test_the_cosines_that_are_asked_about_are_those_of_use() -> None:
    own = USE.latin
    assert {own.group, own.supersede, own.related, own.shown} == {*OF_USE}
