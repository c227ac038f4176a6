"""Phrases that name something, and the word classes by which they are found."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

MOST_CLAUSE_CHARS: Final = 300
"""Maximum number of characters of a clause that are read."""


class Phrase(NamedTuple):
    """A piece of a clause that names something. `share` (0-1) is high if the form of the piece suits a name."""

    text: str
    share: float


def word_classes(name: str) -> dict[str, list[str]]:
    """Read the word classes of a data file in this folder.

    A class begins with a line "[class]", after which its words follow. "#" begins a comment.
    """
    classes: dict[str, list[str]] = {}
    words: list[str] = []
    for line in Path(__file__).with_name(name).read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            words = classes.setdefault(line.strip("[]"), [])
        elif line and not line.startswith("#"):
            words += line.split()
    return classes
