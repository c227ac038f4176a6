"""Finds any of some phrases in what was said."""

from __future__ import annotations

import re
from collections.abc import Iterable


class Phrases:
    """Finds any of some phrases, whatever their case; Latin ones as whole words: "like" is not in "likely".

    >>> Phrases(["like"]).found_in("I LIKE tea"), Phrases(["like"]).found_in("unlikely")
    (True, False)

    A phrase's longest word is looked for as plain text, and its pattern is tried only where that word stands:
    most texts hold none, and one pattern of all phrases would cost ten times as much. Of words that hold one another
    the shortest is looked for first, and in a text of ASCII alone only words that are such.
    """

    def __init__(self, phrases: Iterable[str]) -> None:
        wanted = sorted({phrase.strip().lower() for phrase in phrases if phrase.strip()})
        self._phrases = tuple((max(_BREAK.split(phrase), key=len), _pattern(phrase)) for phrase in wanted)
        words = {word for word, _ in self._phrases}
        self._any = tuple(sorted(word for word in words if not any(w in word for w in words - {word})))
        self._ascii = tuple(word for word in self._any if word.isascii())

    def found_in(self, text: str) -> bool:
        lowered = text.lower()
        for word in self._ascii if lowered.isascii() else self._any:
            if word in lowered:
                break
        else:
            return False
        for word, pattern in self._phrases:  # noqa: SIM110 - a generator takes twice as long, for every exchange
            if word in lowered and pattern.search(lowered):
                return True
        return False


_BREAK = re.compile(r"[\s'’]+")


def _pattern(phrase: str) -> re.Pattern[str]:
    text = re.sub(r"(?:\\ )+", r"\\s+", re.escape(phrase)).replace("'", "['’]")
    before = r"(?<![a-z0-9])" if phrase[0].isascii() else ""
    after = r"(?:s|d|ed|es)?(?![a-z0-9])" if phrase[-1].isascii() else ""
    return re.compile(f"{before}{text}{after}")
