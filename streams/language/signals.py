"""Signals: patterns with which the local estimator finds statements about a person's life in a message.

A message is read in two steps. First, each word is replaced by the letter of its class, so that "I finally moved" and
"we just settled" become the same short string. Then signals, which are patterns over such strings, are found and give
points. English and Chinese each have a file with their classes and signals: `estimator_en.txt`, `estimator_zh.txt`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, NamedTuple

from streams.language.evidence import Weights

UNOPENED_WORDS: Final = 7
"""Maximum number of words that count in a message that is not about a person's life."""


Reading = tuple[float, int, list[str], float, Weights]
"""The result of reading one message: its points, its length in words, the names of its signals, its evidence, and the
weights of its language."""


class Stated(NamedTuple):
    """The statements of a message, that is, the message without its questions and requests.

    `letters` are those of all words, with full stops in place of questions and requests. `asked` is true if there are
    only questions and requests.
    """

    words: list[str]
    letters: str
    asked: bool


def full_stops(found: re.Match[str]) -> str:
    """Return as many full stops as the match has letters, so that the letters after it stay in their places."""
    return "." * len(found[0])


class Signal(NamedTuple):
    """A pattern to find. Each occurrence is worth `points`; at most `most` occurrences count."""

    name: str
    points: float
    most: int
    needs: str
    """A letter without which the pattern cannot match. Searching for this letter first saves most of the time."""
    find: re.Pattern[str]


class Lexicon:
    """The word classes and signals of a language, from a data file in this folder.

    A line in brackets begins a section of the file, and `#` begins a comment. A word belongs to the first class that
    lists it.
    """

    def __init__(self, name: str) -> None:
        sections: dict[str, list[str]] = {}
        lines: list[str] = []
        for line in Path(__file__).with_name(name).read_text(encoding="utf-8").splitlines():
            if line.startswith("["):
                lines = sections.setdefault(line.strip("[]"), [])
            elif line and not line.startswith("#"):
                lines.append(line)
        rows = (line.split(maxsplit=4) for line in sections.pop("signals"))
        self.signals: Final = tuple(
            Signal(title, float(points), int(most), needs, re.compile(find))
            for points, most, needs, title, find in rows
        )
        self.letter_of: Final = {
            word: title[0] for title, lines in reversed(sections.items()) for word in " ".join(lines).split()
        }
        phrases: dict[str, list[Signal]] = {}
        for signal in self.signals:
            if not signal.find.pattern.isalpha():
                phrases.setdefault(signal.needs, []).append(signal)
        self._phrases: Final = [
            (needs, [(found.find.findall, found.points, found.most, found.name) for found in signals])
            for needs, signals in phrases.items()
        ]
        self._words: Final = [
            (signal.find.pattern, signal.points, signal.most, signal.name)
            for signal in self.signals
            if signal.find.pattern.isalpha()
        ]

    def count(self, said: str) -> tuple[float, list[str]]:
        """Return the points of all signals in a string of class letters, and the names of these signals."""
        total, names = 0.0, []
        for needs, phrases in self._phrases:
            if needs in said:
                for find, points, most, name in phrases:
                    if count := len(find(said)):
                        total += points * (count if count < most else most)
                        names.append(name)
        for letters, points, most, name in self._words:
            if count := said.count(letters):
                total += points * (count if count < most else most)
                names.append(name)
        return total, names
