"""The terms of texts as numbers."""

from __future__ import annotations

import doctest
from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tables.search import terms
from tables.search.terms import MOST, Terms, counted, hash_of
from tables.search.tokens import tokens

TEXTS = st.text("abc dé's 我喜欢猫？?!1", max_size=40)


def test_the_examples_in_the_docstrings_hold() -> None:
    assert doctest.testmod(terms).failed == 0


def test_a_hash_is_the_same_in_every_process_and_version() -> None:
    """It is stored: another one would need other `RULES`."""
    assert [hash_of(token) >> terms.COUNT_BITS for token in ("hik", "北京")] == [15784634784693, 7071861957381]


@given(TEXTS)
def test_a_word_is_a_tokens_hash_and_its_count(text: str) -> None:
    expected = {hash_of(token): count for token, count in Counter(tokens(text)).items()}
    assert {word & ~MOST: word & MOST for word in counted(text).words} == expected


@given(st.lists(TEXTS, max_size=5), st.lists(TEXTS, max_size=5))
def test_terms_of_several_texts_are_those_of_each(one: list[str], other: list[str]) -> None:
    together, apart = Terms.of(one + other), Terms.of(one).with_more(Terms.of(other))
    assert len(together) == len(one) + len(other)
    for name in ("words", "sizes", "lengths"):
        assert getattr(together, name).tolist() == getattr(apart, name).tolist()
    assert together.words.tolist() == [word for text in one + other for word in counted(text).words]


def test_a_count_beyond_its_bits_stays_within_them() -> None:
    assert [word & MOST for word in counted("a " * (MOST + 10)).words] == [MOST]
