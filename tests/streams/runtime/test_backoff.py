"""How long to wait before something is tried again."""

from __future__ import annotations

import doctest

from streams.intake import ratings
from streams.models.embedding import embedding
from streams.runtime import backoff


def test_pauses_double_up_to_the_longest() -> None:
    assert doctest.testmod(backoff).failed == 0


def test_vectors_are_asked_for_within_half_a_minute() -> None:
    assert [embedding.BACKOFF.after(tries) for tries in (1, 2, 6, 7)] == [0.5, 1.0, 16.0, 30.0]


def test_a_rater_that_does_not_answer_is_asked_within_the_hour() -> None:
    assert [ratings.BACKOFF.after(tries) for tries in (1, 2, 7, 8, 1_000)] == [30.0, 60.0, 1920.0, 3600.0, 3600.0]
