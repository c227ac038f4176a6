"""The vectors of the last questions."""

from __future__ import annotations

import numpy as np
import pytest

from streams.models.embedding.embedders import Vectors
from streams.models.embedding.question_vectors import MOST_BYTES, QuestionVectors

ENTRY = 4 * 8 + 300
KNOWN = ["where?", "我住在哪里？", "why?"]


def vectors(*numbers: float) -> Vectors:
    return np.repeat(np.array(numbers, np.float32)[:, None], 8, axis=1)


@pytest.fixture
def three() -> QuestionVectors:
    """With room for three."""
    questions = QuestionVectors(3 * ENTRY)
    questions.keep(KNOWN, vectors(1, 2, 3))
    return questions


def first(questions: QuestionVectors, text: str) -> float | None:
    found = questions.of([text])
    return None if found is None else float(found[0, 0])


def test_what_was_asked_is_known(three: QuestionVectors) -> None:
    np.testing.assert_array_equal(three.of([KNOWN[1], KNOWN[0]]), vectors(2, 1))


def test_some_that_are_new_have_to_be_embedded(three: QuestionVectors) -> None:
    assert three.of([KNOWN[0], "new"]) is None
    assert three.of([]) is None


def test_those_that_are_known_are_told_one_by_one(three: QuestionVectors) -> None:
    known = three.known([KNOWN[2], "new"])
    assert [None if vector is None else float(vector[0]) for vector in known] == [3, None]


def test_the_question_that_was_not_asked_for_longest_makes_room(three: QuestionVectors) -> None:
    three.of([KNOWN[0]])
    three.keep(["new"], vectors(4))
    assert [first(three, text) for text in [*KNOWN, "new"]] == [1, None, 3, 4]


def test_bytes_are_bounded() -> None:
    questions = QuestionVectors(10 * ENTRY)
    for number in range(1, 100):
        questions.keep([f"question {number} {'x' * 800}"], vectors(number))
        assert questions._recent.held == min(number, 10) * ENTRY
    assert QuestionVectors()._recent._most == MOST_BYTES == 8_000_000


def test_a_question_that_is_kept_again_is_counted_once(three: QuestionVectors) -> None:
    three.keep(KNOWN, vectors(4, 5, 6))
    assert three._recent.held == 3 * ENTRY
    assert first(three, KNOWN[0]) == 4


def test_a_callers_vectors_are_its_own(three: QuestionVectors) -> None:
    found = three.of(KNOWN)
    assert found is not None
    found[:] = 0
    assert first(three, KNOWN[0]) == 1


def test_no_vector_is_not_kept(three: QuestionVectors) -> None:
    """A service that refused a text may take it later."""
    three.keep(["refused"], vectors(0))
    assert three.of(["refused"]) is None


def test_what_was_asked_is_not_kept(three: QuestionVectors) -> None:
    """Its hash is."""
    keys = [key for key in three._recent._values if isinstance(key, bytes)]
    assert len(keys) == len(KNOWN)
    assert not any(text.encode() in key for key in keys for text in KNOWN)


def test_halves_of_surrogate_pairs_can_be_asked(three: QuestionVectors) -> None:
    assert three.of(["x\ud800y"]) is None
