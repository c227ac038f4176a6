"""The count of a pattern's steps, by which other tests tell patterns that backtrack without bound."""

from __future__ import annotations

import random
import re
import sys
from types import SimpleNamespace

import pytest

from streams.summaries.rules import cues
from streams.summaries.rules.sentences import CHINESE, ENGLISH
from tests.support.steps import Steps, TooManySteps

SHAPES = (
    "abc", "a|ab|abc", "[a-c]+",
    "(?:ab?)*c", "(?:ab?)*?c", "a.*b", "a.*?b", "(?:a|b)++c", "(?>a*)b", "a*+b",
    r"\b\w{2,3}\b", "(?<=a)b", "(?<!a)b", "(?=a.c)a", "(?!ab)a", r"(a|b)\1", "(?i:A)b", "^a", "c$",
    "(?:a|)+b", "(?:){3}a",
)  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_the_counting_engine_ends_where_re_ends(shape: str) -> None:
    chance, tried = random.Random(shape), Steps().of(re.compile(shape))
    for _ in range(200):
        text = "".join(chance.choices("aabbcA d", k=chance.randrange(10)))
        for place in range(len(text) + 1):
            found = re.compile(shape).match(text, place)
            assert tried.end(text, place) == (found.end() if found else None), (text, place)


@pytest.mark.parametrize("cue", [*cues.Cues.__annotations__])
def test_it_ends_where_re_ends_with_the_patterns_of_the_summaries(cue: str) -> None:
    chance, steps = random.Random(cue), Steps()
    for language in (CHINESE, ENGLISH):
        pattern = getattr(language, cue)
        words = re.findall(r"[\u4e00-\u9fff]{1,4}|[A-Za-z]{2,12}", pattern.pattern)
        for _ in range(10):
            text = " ".join(chance.choices(words, k=8))
            for place in range(len(text) + 1):
                found = pattern.match(text, place)
                assert steps.of(pattern).end(text, place) == (found.end() if found else None), (text, place)


def of(pattern: str, text: str, most: int = 1_000_000) -> int:
    steps, owner = Steps(most), SimpleNamespace(pattern=re.compile(pattern))
    with steps.counted(owner):
        owner.pattern.search(text)
    return steps.total


def test_steps_double_with_the_text_where_each_character_is_tried_once() -> None:
    assert of("xa*b", "x" + "a" * 200) < 2.1 * of("xa*b", "x" + "a" * 100)


def test_steps_are_four_times_as_many_where_each_place_is_tried_to_the_end() -> None:
    assert of("a*b", "a" * 200) > 3.5 * of("a*b", "a" * 100)


@pytest.mark.parametrize("pattern", ["(?:a+)+b", "(?:a|aa)+b", "(?:a*a*)*b"])
def test_a_pattern_that_backtracks_without_bound_is_stopped(pattern: str) -> None:
    with pytest.raises(TooManySteps):
        of(pattern, "a" * 60)


def test_afterwards_all_is_as_it_was() -> None:
    pattern, depth = re.compile("a"), sys.getrecursionlimit()
    owner = SimpleNamespace(pattern=pattern, several=(pattern, "b"))
    with Steps().counted(owner):
        assert owner.pattern is not pattern
        assert owner.several[0].sub("c", "aba") == "cbc"
    assert (owner.pattern, owner.several, sys.getrecursionlimit()) == (pattern, (pattern, "b"), depth)
