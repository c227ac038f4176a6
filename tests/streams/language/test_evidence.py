"""The learned part of the local estimator: small, bounded, and the sum that was fitted."""

from __future__ import annotations

import doctest

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streams.language import evidence, reading_en, reading_zh
from streams.language.estimator import READ_CHARS, estimate
from streams.language.evidence import BUCKETS, FILE, ROOTS, WEIGHTS, loaded


@pytest.mark.parametrize("module", [evidence, reading_en, reading_zh])
def test_the_examples_in_the_docstrings_hold(module: object) -> None:
    assert doctest.testmod(module).failed == 0  # type: ignore[arg-type]


def test_the_coefficients_are_a_small_file_for_both_languages() -> None:
    assert FILE.stat().st_size < 40_000
    assert set(WEIGHTS) == {"en", "zh"}
    assert all(len(weights.of_bucket) == BUCKETS for weights in WEIGHTS.values())


def test_a_buckets_coefficient_is_a_signed_byte_times_the_scale() -> None:
    header = FILE.read_bytes().split(b"\n", 1)[0]
    made = loaded(header + b"\n" + bytes([255, 1]) + bytes(BUCKETS - 2) + bytes(BUCKETS))
    assert made["en"].of_bucket[0] == -made["en"].of_bucket[1] < 0


def test_there_is_a_root_for_any_message_that_is_read() -> None:
    assert len(ROOTS) > READ_CHARS + 2


@pytest.mark.parametrize("word", ["I'm", "(i'm)", "I’m,"])
def test_case_marks_and_kind_of_apostrophe_make_no_other_word(word: str) -> None:
    assert reading_en.ngrams(word) == reading_en.ngrams("i'm")


@pytest.mark.parametrize(
    "text", ["x" * 100_000, "我" * 100_000, "My son has asthma. " * 10_000, "我儿子有哮喘。" * 9_000]
)
def test_what_is_beyond_a_fixed_number_of_characters_changes_nothing(text: str) -> None:
    assert estimate(text, text) == estimate(text[:READ_CHARS], text[:READ_CHARS])


@given(st.text(max_size=40), st.text(max_size=40))
def test_the_same_words_make_the_same_whatever_was_read_before(first: str, second: str) -> None:
    before = estimate(first, second)
    estimate(second, first)
    assert estimate(first, second) == before
