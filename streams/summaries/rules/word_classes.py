"""A piece of a clause that names something, and the word classes that it is found by."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

MOST_CLAUSE_CHARS: Final = 300
"""So much of a clause is looked at."""


class Phrase(NamedTuple):
    """A piece of a clause that names something, and how good a name it is by its form, 0-1."""

    text: str
    share: float


def word_classes(name: str) -> dict[str, list[str]]:
    """The word classes of a data file, which stands beside this one: "[class]", then its words, "#" a comment."""
    classes: dict[str, list[str]] = {}
    words: list[str] = []
    for line in Path(__file__).with_name(name).read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            words = classes.setdefault(line.strip("[]"), [])
        elif line and not line.startswith("#"):
            words += line.split()
    return classes
