"""No pattern that sees what users say takes time that grows with more than the length of that."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from importlib import import_module
from pkgutil import walk_packages
from typing import Any, Final

import pytest

import schemas
import streams
import tables
from tests.support.steps import HOSTILE_PIECES, Steps, TooManySteps

#: A text, and one that is twice as long.
CHARACTERS: Final = 150
#: Behind the text, where nothing that repeats can end.
END: Final = "\x01"
#: Of a text twice as long, steps that have doubled, with a little more for what is the same in both.
TWICE: Final = 2.6
#: A character is tried so often by a pattern that looks for one of a few hundred words.
MOST_A_CHARACTER: Final = 400

#: Those that would, and do not: most are begun at one place alone, with `match` or `fullmatch`.
BOUNDED: Final = {
    "schemas.settings.summaries._DIGITS": "a setting",
    "schemas.settings.summaries._MODEL": "a setting",
    "streams.doors.http.pages._INLINE_SCRIPT": "a page of a package's",
    "streams.models.refiner._NUMBER": "at the beginning of a model's answer",
    "streams.summaries.summary_answer._SHORT_ID": "all of an id that a model has named",
    "streams.language.asking._PAST": "behind a phrase that was found: what is between two of them is looked at once",
    "streams.language.reading_zh.LEXICON": "of a text's first characters, see READ_CHARS",
    "tables.search.chinese_statements._OF_THINGS": "in a clause of a sentence, of at most 300 characters",
    "streams.doors.ui.my_memory._COMMENT": "of notes, in which markup is escaped",
}
#: Summaries are made in a process of their own; `tests/streams/summaries/rules/test_cues.py` holds their patterns.
ELSEWHERE: Final = ("streams.summaries.rules.",)


def patterns(value: Any, depth: int = 4) -> Iterator[re.Pattern[str]]:
    """Those in a value, however it holds them."""
    if isinstance(value, re.Pattern):
        if isinstance(value.pattern, str):
            yield value
    elif depth and isinstance(value, list | tuple | set | frozenset):
        for one in value:
            yield from patterns(one, depth - 1)
    elif depth and isinstance(value, dict):
        yield from patterns([*value, *value.values()], depth)
    elif depth and type(value).__module__.startswith(("schemas.", "streams.", "tables.")):
        slots = [name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())]
        held = [getattr(value, name, None) for name in (*slots, *getattr(value, "__dict__", {}))]
        yield from patterns(held, depth - 1)


def all_patterns() -> dict[re.Pattern[str], str]:
    """By the name of the module and of what holds them there."""
    found: dict[re.Pattern[str], str] = {}
    for package in (schemas, streams, tables):
        for module in walk_packages(package.__path__, f"{package.__name__}."):
            if module.name.startswith(ELSEWHERE) or module.name.endswith("__main__"):
                continue
            for name, value in vars(import_module(module.name)).items():
                for pattern in patterns(value):
                    found.setdefault(pattern, f"{module.name}.{name}")
    return found


def hostile(pattern: re.Pattern[str]) -> Iterator[str]:
    """What is repeated: what patterns in general take long for, and pieces of this one."""
    yield from HOSTILE_PIECES
    own = re.findall(r"[\u4e00-\u9fff]{1,3}|[A-Za-z]{2,}|[^\w\s]", pattern.pattern)
    yield from (f"{one} " for one in own[:8])
    yield "".join(own[:6])


def slow_for(pattern: re.Pattern[str]) -> list[str]:
    """The pieces of which twice as many take more than twice the steps."""
    found = []
    for piece in hostile(pattern):
        taken = []
        for size in (CHARACTERS, 2 * CHARACTERS):
            steps = Steps(most=10 * MOST_A_CHARACTER * size)
            try:
                with steps.counted():
                    steps.of(pattern).finditer((piece * size)[:size] + END)
            except TooManySteps:
                steps.total *= 100
            taken.append(steps.total)
        if taken[1] > TWICE * taken[0] + 1000 or taken[1] > MOST_A_CHARACTER * 2 * CHARACTERS:
            found.append(piece)
    return found


def slow_patterns(found: dict[str, list[str]]) -> None:
    for pattern, name in all_patterns().items():
        if pieces := slow_for(pattern):
            found[name] = pieces


@pytest.mark.slow
def test_no_pattern_takes_steps_that_grow_with_the_square_of_a_text() -> None:
    """On the event loop and on a shard's thread; those that are bounded otherwise are named with the reason."""
    found: dict[str, list[str]] = {}
    before = threading.stack_size(256 << 20)  # the counting engine calls itself for each character
    try:
        thread = threading.Thread(target=slow_patterns, args=(found,))
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert found.keys() == BOUNDED.keys(), found


def test_a_pattern_that_is_slow_is_found() -> None:
    for slow in (r"\w.*[?？]\W*$", r"(?<=[!?\n])(?=\s*\w)", r"\s+$"):
        assert slow_for(re.compile(slow, re.DOTALL)), slow
    for quick in (r"\w+", r"[.!?]", r"(?<![a-z0-9])remember(?![a-z0-9])"):
        assert not slow_for(re.compile(quick)), quick
