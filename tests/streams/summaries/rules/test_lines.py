"""The runs of clauses that make a line."""

from __future__ import annotations

from itertools import count

import numpy as np
import pytest

from streams.summaries.rules import lines as rule
from streams.summaries.rules.embedding import Embed, Floats
from streams.summaries.rules.kinds import Kind
from streams.summaries.rules.lines import lines
from streams.summaries.rules.sentences import Sentence, sentences_of
from tests.streams.summaries.rules.talking import turns


def found(monkeypatch: pytest.MonkeyPatch, said: str, *chances: tuple[Kind, float]) -> list[tuple[str, str]]:
    """The lines of a message whose clauses have these kinds with these chances: (kind, text)."""
    each = iter(chances)

    def given(sentences: list[Sentence], _: Embed | None) -> list[Floats]:
        return [np.array([chance(*next(each)) for _ in sentence.clauses], np.float32) for sentence in sentences]

    monkeypatch.setattr(rule, "probabilities", given)
    return [(line.kind.name.lower(), line.text) for line in lines(sentences_of(turns(said)), None)]


def chance(kind: Kind, sure: float) -> list[float]:
    row = [0.0] * len(Kind)
    row[kind] = sure
    row[Kind.NONE] += 1 - sure
    return row


def test_what_goes_on_with_a_fact_belongs_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    said = "My daughter is five, sings in a choir, tired today"
    assert found(monkeypatch, said, (Kind.INSIGHT, 0.9), (Kind.INSIGHT, 0.5), (Kind.INSIGHT, 0.1)) == [
        ("insight", "My daughter is five, sings in a choir")
    ]


def test_a_clause_with_its_own_subject_is_a_line_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    said = "My daughter is five, she sings in a choir"
    assert [text for _, text in found(monkeypatch, said, (Kind.INSIGHT, 0.9), (Kind.INSIGHT, 0.9))] == [
        "My daughter is five",
        "she sings in a choir",
    ]


def test_what_is_not_sure_begins_no_line(monkeypatch: pytest.MonkeyPatch) -> None:
    assert found(monkeypatch, "Tea, perhaps", (Kind.PREFERENCE, 0.5), (Kind.PREFERENCE, 0.5)) == []


def test_because_begins_only_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    said = "We take the train, because the bus is late"
    assert found(monkeypatch, said, (Kind.DECISION, 0.9), (Kind.INSIGHT, 0.9)) == [("decision", "We take the train")]
    assert found(monkeypatch, said, (Kind.DECISION, 0.9), (Kind.REASON, 0.9)) == [
        ("decision", "We take the train"),
        ("reason", "because the bus is late"),
    ]


@pytest.mark.parametrize(("kind", "made"), [(Kind.PREFERENCE, 0), (Kind.INSIGHT, 0), (Kind.DECISION, 1)])
def test_the_assistant_has_no_tastes_and_no_life(monkeypatch: pytest.MonkeyPatch, kind: Kind, made: int) -> None:
    assert len(found(monkeypatch, "A: the blue one it is", (kind, 0.99))) == made


def test_code_makes_no_line(monkeypatch: pytest.MonkeyPatch) -> None:
    chances = [(Kind.INSIGHT, 0.99) for _ in zip(range(3), count(), strict=False)]
    assert found(monkeypatch, "```\nname = 'Lena'\n```", *chances) == []
