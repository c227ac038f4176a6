"""What a sentence tells of its speaker."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from tables.search.tokens import tokens, weight


class Part(StrEnum):
    """The parts of a profile, by worth."""

    PINNED = "pinned"
    ABOUT = "about"
    PEOPLE = "people"
    PREFERENCES = "preferences"
    TASKS = "tasks"


class Fact(NamedTuple):
    """A fact: the part of the profile to which it belongs, and its key. The newest sentence with a key holds.

    The facts of lower `rank` are shown first. A task without `dated` needs no date to be one.
    One that `ends` is no task: it tells that older tasks with all words of its key are cancelled.
    """

    part: Part
    key: tuple[str, ...]
    rank: int = 0
    dated: bool = False
    ends: bool = False


def key_of(kind: str, words: str) -> tuple[str, ...]:
    """Return the key of a fact about these words: the kind, and the terms of the words that have weight."""
    return (kind, *sorted({one for one in tokens(words) if weight(one) == 1}))
