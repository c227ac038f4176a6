"""What kind of line each clause makes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.summaries.rules import extracted, kinds
from streams.summaries.rules.kinds import BUCKETS, SHAPES, Kind, features, probabilities, words_of
from streams.summaries.rules.sentences import Sentence, sentences_of
from tests.streams.summaries.rules.talking import turns
from tests.support.examples import examples

DAY = (
    "Good morning! My name is Lena, and I'm a nurse in Graz.",
    "A: Hello Lena.",
    "I prefer short answers. Could you remind me to call the bank tomorrow?",
    "A: Sure.",
    "The printer doesn't work.",
    "A: Try to restart it.",
    "That fixed it!",
    "We settled on DuckDB, because it needs no server.",
)


def said(*lines: str) -> list[Sentence]:
    return sentences_of(turns(*lines))


def likeliest(*lines: str) -> list[str]:
    """The most probable kind of each clause."""
    return [Kind(int(chances.argmax())).name.lower() for found in probabilities(said(*lines)) for chances in found]


def test_a_word_is_a_word_a_mark_or_a_character() -> None:
    assert words_of("It’s 7:30, 出发！ 서울에서") == ["it's", "0", ":", "0", ",", "出", "发", "!", "서울에서"]


def test_the_kinds_of_a_day() -> None:
    found = likeliest(*DAY)
    assert {"insight", "preference", "task", "problem", "solution", "decision", "reason"} <= set(found)
    assert found[0] == "none"


def test_without_the_encoder_there_are_other_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kinds, "encoder", lambda: None)
    assert {"insight", "preference"} <= set(likeliest(*DAY))


def test_what_was_said_before_tells_what_an_answer_is() -> None:
    """The same words, after a question and after none."""
    asked = probabilities(said("A: Which colour do you want for the tiles, grey or white?", "grey"))[-1]
    alone = probabilities(said("grey"))[-1]
    assert asked[-1][Kind.DECISION] > alone[-1][Kind.DECISION] + 0.2


@examples(60)
@given(st.lists(st.text(max_size=30), max_size=5))
def test_chances_are_chances_whatever_is_said(texts: list[str]) -> None:
    sentences = said(*[text or "?" for text in texts])
    found = features(sentences)
    assert all(0 <= index < BUCKETS for row in found.ngrams for index in row)
    assert all(0 <= index < SHAPES for row in found.shapes for index in row)
    for sentence, chances in zip(sentences, probabilities(sentences), strict=True):
        assert chances.shape == (len(sentence.clauses), len(Kind))
        np.testing.assert_allclose(chances.sum(axis=1), 1, rtol=1e-5)


def test_nothing_said_has_no_kinds() -> None:
    assert probabilities([]) == []
    assert extracted([]).insights == ()


def test_of_a_very_long_day_the_last_sentences_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """So time and memory have a bound, whatever a user sends."""
    day = said(*DAY)
    last = sum(len(sentence.clauses) for sentence in day[-2:])
    monkeypatch.setattr(kinds, "MOST_CLAUSES", last)
    found = probabilities(day)
    assert [len(chances) for chances in found] == [len(sentence.clauses) for sentence in day]
    assert all(chances[:, Kind.NONE].min() == 1 for chances in found[:-2])
    assert found[-1][:, Kind.NONE].max() < 1


def test_half_a_character_is_no_fault() -> None:
    """A surrogate that stands alone cannot be embedded."""
    cut = said("I like tea")
    broken = [replace(one, text=f"{one.text} \ud800", clauses=(f"{one.clauses[0]} \ud800",)) for one in cut]
    assert len(probabilities(broken)) == 1
