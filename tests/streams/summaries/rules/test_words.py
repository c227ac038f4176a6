"""Texts as vectors of their words."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.summaries.rules.words import MOST_COLUMNS, word_vectors
from tests.support.examples import examples


def cosine(one: str, other: str, *beside: str) -> float:
    vectors, _ = word_vectors([one, other, *beside])
    return float(vectors[0] @ vectors[1])


def test_texts_of_the_same_words_are_as_one_and_of_different_ones_nothing_alike() -> None:
    assert cosine("Boats sail home", "a boat, sailing home!") == pytest.approx(1)
    assert cosine("Boats sail home", "cats sleep") == 0
    assert cosine("我喜欢爬山", "爬山我喜欢") > 0.5


def test_a_word_that_all_use_tells_less_than_a_rare_one() -> None:
    beside = ("today we rest", "today we sing", "today we dance")
    assert cosine("today boats", "today cats", *beside) < cosine("today boats", "boats purr", *beside)


def test_a_word_that_only_a_title_has_makes_it_longer() -> None:
    """So a title that says something else besides is farther from its topic."""
    vectors, titles = word_vectors(["boats sail"], ["boats sail", "boats sail, cats purr", "cats"])
    near, far, apart = (titles @ vectors[0]).tolist()
    assert near == pytest.approx(1)
    assert 0 < far < near
    assert apart == 0


@examples(100)
@given(
    st.lists(st.text(alphabet="ab 我喜.", max_size=12), max_size=8), st.lists(st.text("ab我", max_size=6), max_size=4)
)
def test_a_vector_is_of_length_one_or_nothing(texts: list[str], titles: list[str]) -> None:
    """A title's is no longer: its own words are in no column."""
    of_texts, of_titles = word_vectors(texts, titles)
    assert (len(of_texts), len(of_titles)) == (len(texts), len(titles))
    assert all(length == pytest.approx(1, abs=1e-5) or length == 0 for length in np.linalg.norm(of_texts, axis=1))
    assert np.all(np.linalg.norm(of_titles, axis=1) < 1 + 1e-5)


def test_any_number_of_words_has_a_bounded_number_of_columns() -> None:
    texts = [" ".join(f"word{i}x{j}" for j in range(600)) for i in range(10)]
    assert word_vectors(texts)[0].shape == (10, MOST_COLUMNS)


@pytest.mark.slow
def test_they_are_the_same_in_every_process() -> None:
    """Whatever order its sets have."""
    script = (
        "from streams.summaries.rules.words import word_vectors;"
        "print(word_vectors(['boats sail home today', 'cats sleep at home', '我喜欢爬山'])[0].tobytes().hex())"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            check=True,
            env=os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        ).stdout
        for seed in ("1", "2")
    }
    assert len(said) == 1
