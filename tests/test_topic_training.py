"""The topics of the invented dialogues, and the script that fits the choice of topics to them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import orjson
import pytest

from benchmarks import topic_training as training
from benchmarks.evidence.marked_dialogues import dialogues
from benchmarks.summary_training import SPECIFIED
from benchmarks.topic_training import Day, days_of, dialogues_of, fit, report, topic_files
from schemas.summaries import TITLE_CHARS
from streams.summaries.rules.topics import FILE, picked


@pytest.mark.parametrize("path", topic_files(), ids=lambda path: path.name.partition(".")[0])
def test_each_dialogue_has_topics_of_its_messages(path: Path) -> None:
    lines = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    said = list(dialogues(dialogues_of(path)))
    numbers = [line["dialogue"] for line in lines]
    assert numbers == (sorted(set(numbers)) if path.name.startswith(SPECIFIED) else list(range(len(said))))
    for line in lines:
        messages = said[line["dialogue"]]
        for topic in line["topics"]:
            assert 0 < len(topic["text"]) <= TITLE_CHARS
            assert set(topic["messages"]) <= set(range(len(messages)))
            assert topic["messages"]


def test_the_shipped_weights_are_fitted_to_these_topics() -> None:
    """If not: `python benchmarks/summary_training.py --write`, then `python benchmarks/topic_training.py --write`."""
    with np.load(FILE) as file:
        assert bytes(file["fingerprint"]) == bytes(training.fingerprint())


@pytest.fixture(scope="module")
def few() -> list[Day]:
    """The dialogues of a small file."""
    return days_of(topic_files()[0], None)


@pytest.mark.slow
def test_the_fitted_model_chooses_what_it_was_shown(few: list[Day]) -> None:
    weights = fit(few, 100.0)
    chosen = [(day, place) for day in few for place in picked(weights, day.found, (0.5,) * 5)]
    right = [day.overlaps[place].max(initial=0) >= 0.5 for day, place in chosen]
    assert sum(right) > 0.8 * len(right) > 0.8 * len(few)


@pytest.mark.slow
def test_the_same_topics_make_the_same_weights(few: list[Day]) -> None:
    assert all(np.array_equal(one, other) for one, other in zip(fit(few, 0.04), fit(few, 0.04), strict=True))


@pytest.mark.slow
def test_a_report_has_precision_and_recall(few: list[Day], capsys: pytest.CaptureFixture[str]) -> None:
    report(few, 0.04, 2)
    topics = sum(len(day.topics) for day in few)
    assert f", {topics})" in capsys.readouterr().out
