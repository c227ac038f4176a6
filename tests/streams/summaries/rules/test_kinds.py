"""What kind of line each clause makes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.summaries.rules import extracted, talk
from streams.summaries.rules.embedding import Floats, Remembered, encoder
from streams.summaries.rules.kinds import BUCKETS, SHAPES, Kind, features, probabilities, words_of
from streams.summaries.rules.sentences import Sentence, sentences_of
from streams.summaries.rules.talk import Talk
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


def probabilities_of(sentences: Sequence[Sentence], *, embedded: bool = True) -> list[Floats]:
    embed = encoder() if embedded else None
    return probabilities(sentences, Remembered(embed) if embed else None)


def likeliest(*lines: str, embedded: bool = True) -> list[str]:
    """The most probable kind of each clause."""
    found = probabilities_of(said(*lines), embedded=embedded)
    return [Kind(int(row.argmax())).name.lower() for chances in found for row in chances]


def test_a_word_is_a_word_a_mark_or_a_character() -> None:
    assert words_of("It’s 7:30, 出发！ 서울에서") == ["it's", "0", ":", "0", ",", "出", "发", "!", "서울에서"]


def test_the_kinds_of_a_day() -> None:
    found = likeliest(*DAY)
    assert {"insight", "preference", "task", "problem", "solution", "decision", "reason"} <= set(found)
    assert found[0] == "none"


def test_without_the_encoder_there_are_other_weights() -> None:
    assert {"insight", "preference"} <= set(likeliest(*DAY, embedded=False))


def test_a_text_is_embedded_once() -> None:
    asked: list[str] = []

    def embed(texts: Sequence[str]) -> Floats:
        asked.extend(texts)
        return np.array([[len(text)] for text in texts], np.float32)

    remembered = Remembered(embed)
    assert remembered(["tea", "oats", "tea"]).tolist() == [[3], [4], [3]]
    assert remembered(["oats", "tea", "rice"]).tolist() == [[4], [3], [4]]
    assert asked == ["tea", "oats", "rice"]


def test_what_was_said_before_tells_what_an_answer_is() -> None:
    """The same words, after a question and after none."""
    asked = probabilities_of(said("A: Which colour do you want for the tiles, grey or white?", "grey"))[-1]
    alone = probabilities_of(said("grey"))[-1]
    assert asked[-1][Kind.DECISION] > alone[-1][Kind.DECISION] + 0.2


@examples(60)
@given(st.lists(st.text(max_size=30), max_size=5))
def test_chances_are_chances_whatever_is_said(texts: list[str]) -> None:
    sentences = said(*[text or "?" for text in texts])
    found = features(sentences)
    assert all(0 <= index < BUCKETS for row in found.ngrams for index in row)
    assert all(0 <= index < SHAPES for row in found.shapes for index in row)
    for sentence, chances in zip(sentences, probabilities_of(sentences), strict=True):
        assert chances.shape == (len(sentence.clauses), len(Kind))
        np.testing.assert_allclose(chances.sum(axis=1), 1, rtol=1e-5)


def test_nothing_said_has_no_kinds() -> None:
    assert probabilities_of([]) == []
    assert extracted([]).insights == ()


def test_of_a_very_long_day_the_last_sentences_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """So time and memory have a bound, whatever a user sends."""
    whole = Talk(turns(*DAY)).sentences
    monkeypatch.setattr(talk, "MOST_CLAUSES", sum(len(sentence.clauses) for sentence in whole[-2:]))
    assert [sentence.text for sentence in Talk(turns(*DAY)).sentences] == [sentence.text for sentence in whole[-2:]]


def test_half_a_character_is_no_fault() -> None:
    """A surrogate that stands alone cannot be embedded."""
    cut = said("I like tea")
    broken = [replace(one, text=f"{one.text} \ud800", clauses=(f"{one.clauses[0]} \ud800",)) for one in cut]
    assert len(probabilities_of(broken)) == 1
