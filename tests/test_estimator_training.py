"""The script that fits the local estimator: what it fits is what runs, and what it reports was not seen."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import estimator_training as training
from benchmarks import promotion_quality
from benchmarks.estimator_training import (
    Exchange,
    Model,
    cross_validated,
    features,
    fit,
    folds,
    grouped,
    ours,
    weights,
)
from benchmarks.evidence.promotions import auc, correlation
from streams.language.estimator import bounded, estimate, spoken_chinese
from streams.language.evidence import WEIGHTS

LANGUAGES = ["en", "zh"]


def fitted(language: str) -> Model:
    sentences = ours(language)
    shape, ngrams = features(sentences, language)
    return fit(shape, ngrams, np.array([float(each.worthy) for each in sentences]), weights(sentences))


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_is_fitted_is_what_runs(language: str) -> None:
    """The estimator's score is the features' product with the coefficients of the file."""
    shipped = WEIGHTS[language]
    sentences = [each for each in ours(language) if training.language_of([each]) == language]
    shape, ngrams = features(sentences, language)
    coefficients = np.array([shipped.signals, *shipped.sides[0], *shipped.sides[1]])
    points = shape @ coefficients + ngrams @ np.array(shipped.of_bucket) + shipped.bias
    for each, expected in zip(sentences, points, strict=True):
        mixed = spoken_chinese(each.user) != spoken_chinese(each.assistant) or language == "zh"
        if not (mixed and any(char.isascii() and char.isalpha() for char in each.user + each.assistant)):
            assert estimate(each.user, each.assistant).score == pytest.approx(bounded(float(expected))), each


def test_the_same_data_make_the_same_file() -> None:
    assert training.written({language: fitted(language) for language in LANGUAGES}) == training.written(
        {language: fitted(language) for language in LANGUAGES}
    )


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_was_not_seen_is_told_apart_and_not_by_its_length(language: str) -> None:
    sentences = ours(language)
    points = cross_validated(sentences, language)
    worthy = np.array([each.worthy for each in sentences])
    length = np.array([len(each.user) + len(each.assistant) for each in sentences])
    told_apart, by_length = auc(points[worthy], points[~worthy]), auc(length[worthy] * 1.0, length[~worthy] * 1.0)
    assert told_apart is not None
    assert by_length is not None
    assert told_apart > 0.93
    assert by_length < 0.7
    related = correlation(points, np.log1p(length))
    assert related is not None
    assert abs(related) < 0.35


def test_our_sentences_are_hundreds_of_both_kinds_in_both_languages() -> None:
    for language in LANGUAGES:
        kinds = [each.worthy for each in ours(language)]
        assert min(kinds.count(True), kinds.count(False)) > 75
    assert any("謝" in each.user for each in ours("zh")), "traditional characters"


def test_held_out_sentences_are_in_no_training_data_and_are_told_apart() -> None:
    """Nothing was fitted to them, so most of both kinds must be decided rightly by the default settings."""
    for language, figures in promotion_quality.held_out().items():
        held_out = {each.user for each in training.sentences(promotion_quality.HELD_OUT, language)}
        assert len(held_out) == figures["worthy"] + figures["others"] == 30
        assert held_out.isdisjoint(each.user for each in ours(language))
        assert figures["worthy_promoted"] >= 0.8
        assert figures["others_promoted"] <= 0.1


def exchange(user: str, assistant: str = "") -> Exchange:
    return Exchange(user, assistant, True, False, "")


def test_an_exchange_belongs_to_who_said_any_of_it() -> None:
    found = grouped([exchange("a"), exchange("b\nc", "d"), exchange("e", "f")], {"a": "ann", "c": "bo", "f": "cy"})
    assert [each.group for each in found] == ["ann", "bo", "cy"]


def test_what_nobody_said_is_grouped_with_what_shares_a_text_with_it() -> None:
    found = grouped([exchange("hi", "hello"), exchange("Hello", "bye"), exchange("so", "what")], {})
    assert found[0].group == found[1].group != found[2].group


def test_a_group_is_in_one_fold() -> None:
    exchanges = [exchange(str(number))._replace(group=f"user {number % 5}") for number in range(50)]
    fold = folds(exchanges)
    assert len(set(fold)) == training.FOLDS
    assert len({(each.group, place) for each, place in zip(exchanges, fold, strict=True)}) == 5
