"""The invented dialogues with marks, and the script that fits the kinds of clauses to them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from benchmarks import summary_training as training
from benchmarks.evidence import summary_gold
from benchmarks.evidence.marked_dialogues import dialogues, labelled, message_of
from benchmarks.summary_training import DIALOGUES, Fitted, cross_validated, fit, judged, matrix, weights, written
from streams.summaries.rules.embedding import encoder
from streams.summaries.rules.kinds import BUCKETS, FILE, SHAPES, Kind, Weights, features

FILES: Final = sorted(DIALOGUES.glob("*.txt"))
DAYS: Final = Path(summary_gold.__file__).parent.parent / "summary_days"


def test_marks_are_cut_and_say_what_the_words_are() -> None:
    read = message_of("u: ok, I'll [t ring the vet [w on Monday]] [not now]")
    assert read.by_user
    assert read.text == "ok, I'll ring the vet on Monday [not now]"
    assert {(letter, read.text[start:end]) for letter, start, end in read.spans} == {
        ("t", "ring the vet on Monday"),
        ("w", "on Monday"),
    }


@pytest.mark.parametrize("line", ["user: hello", "u: [t ring the vet", "hello"])
def test_a_line_that_is_no_message_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match=r"neither|not closed"):
        message_of(line)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_file_has_marks_and_more_without(path: Path) -> None:
    kinds = Counter(kind for day in labelled(path) for kind in day.kinds)
    assert set(kinds) == set(range(len(Kind)))
    assert kinds[Kind.NONE] > 0.3 * kinds.total()


def test_no_day_that_is_judged_is_among_them() -> None:
    said = {message.text for path in FILES for day in dialogues(path) for message in day if len(message.text) > 30}
    days = [day for half in sorted(DAYS.glob("*.jsonl")) for day in summary_gold.read(half)]
    assert len(said) > 5_000
    assert len(days) == 60
    assert [message.content for day in days for message in day.messages if message.content in said] == []


def test_the_shipped_weights_are_fitted_to_these_dialogues() -> None:
    """If not: `python benchmarks/summary_training.py --write`."""
    with np.load(FILE) as file:
        assert bytes(file["fingerprint"]) == bytes(training.fingerprint())


@pytest.fixture(scope="module")
def few() -> tuple[object, np.ndarray, list[str]]:
    """The features, kinds and names of some dialogues' clauses."""
    days = list(labelled(DIALOGUES / "specified.txt"))
    known = matrix([features(day.sentences) for day in days], encoder())
    return (
        known,
        np.array([kind for day in days for kind in day.kinds]),
        [day.name for day in days for _ in day.kinds],
    )


@pytest.mark.slow
def test_what_is_fitted_is_what_runs(few: tuple[object, np.ndarray, list[str]]) -> None:
    known, kinds, names = few
    fitted = fit(known, kinds, weights(names), 2.0)
    sentences = next(iter(labelled(DIALOGUES / "en.txt"))).sentences
    found = features(sentences)
    parts = np.split(fitted.coefficients, [BUCKETS, BUCKETS + SHAPES])
    ran = Weights(*(part.astype(np.float32) for part in (*parts, fitted.bias))).probabilities(found, encoder())
    np.testing.assert_allclose(ran, judged(matrix([found], encoder()), fitted), atol=1e-4)


@pytest.mark.slow
def test_the_same_data_make_the_same_weights(few: tuple[object, np.ndarray, list[str]]) -> None:
    known, kinds, names = few
    one, other = (written({"alone": fit(known, kinds, weights(names), 2.0)}) for _ in range(2))
    assert one.keys() == other.keys()
    assert all(np.array_equal(one[name], other[name]) for name in one)


@pytest.mark.slow
def test_each_clause_is_judged_by_a_model_that_has_not_seen_it() -> None:
    """What can only be known by heart is not found."""
    kinds = np.array(list(range(len(Kind))) * 10)
    known = np.eye(len(kinds))
    found = cross_validated(known, kinds, [f"d{place}" for place in range(len(kinds))], 10.0, 5)
    assert (found.argmax(axis=1) == kinds).mean() < 0.5
    assert (judged(known, fit(known, kinds, np.ones(len(kinds)), 10.0)).argmax(axis=1) == kinds).all()


def test_a_report_has_precision_and_recall(capsys: pytest.CaptureFixture[str]) -> None:
    kinds = np.array([1, 1, 0, 0])
    found = np.zeros((4, len(Kind)))
    found[[0, 2], 1] = 1
    found[[1, 3], 0] = 1
    training.report(found, kinds, np.array(["en"] * 4))
    assert "preference 0.50/0.50 of 2" in capsys.readouterr().out


def test_coefficients_are_near_what_is_written() -> None:
    coefficients = np.zeros((BUCKETS + SHAPES, len(Kind)))
    coefficients[7, 3] = 1.27
    arrays = written({"alone": Fitted(coefficients, np.zeros(len(Kind)))})
    assert arrays["alone_ngrams"][7, 3] * arrays["alone_ngrams_scale"] == pytest.approx(1.27)
