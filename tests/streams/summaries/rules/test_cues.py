"""The patterns that texts of users are held against."""

from __future__ import annotations

import random
import re
from importlib import import_module
from itertools import product
from pathlib import Path
from pkgutil import iter_modules

import pytest

from streams.summaries import rules
from streams.summaries.rules import cues, extracted
from streams.summaries.rules.sentences import CHINESE, ENGLISH
from tests.streams.summaries.rules.talking import turns
from tests.support.steps import Steps


def test_both_languages_know_all_patterns() -> None:
    for known in (CHINESE, ENGLISH):
        assert all(isinstance(getattr(known, name), re.Pattern) for name in cues.Cues.__annotations__)
        assert known.openers.match("xyz")


def test_an_apostrophe_stands_for_both_of_its_forms() -> None:
    assert ENGLISH.must.search("I can't forget to pay")
    assert ENGLISH.must.search("I can’t forget to pay")


@pytest.mark.slow
def test_no_text_takes_many_steps() -> None:
    """Patterns that backtrack without bound show on repeated pieces of themselves."""
    pieces = ["，", ",", "。", " ", "?", "-"]
    for file in sorted(Path(cues.__file__).parent.glob("*.txt")):
        text = file.read_text(encoding="utf-8")
        pieces += re.findall(r"[\u4e00-\u9fff]{1,4}", text)
        pieces += [f"{word} " for word in re.findall(r"[A-Za-z]{2,12}", text)]
    steps = Steps()
    summed_up("I usually read the history textbook, and sometimes I discuss it. " * 3, steps)
    most = 100 * steps.total
    some = random.Random(7)
    for _ in range(80):
        few = some.choices(pieces, k=3)
        text = some.choice(["我", "I "]) + "".join(some.choices(few, k=50))
        steps.again(most)
        summed_up(text, steps)


def summed_up(text: str, steps: Steps) -> None:
    """It fails, with the text, when there are too many steps."""
    for language, cue in product((CHINESE, ENGLISH), cues.Cues.__annotations__):
        getattr(language, cue)  # compiled when it is first looked with
    modules = [import_module(module.name) for module in iter_modules(rules.__path__, f"{rules.__name__}.")]
    with steps.counted(CHINESE, ENGLISH, *modules):
        extracted(turns(text, f"A: {text}"))
