"""Finds any of some phrases in what was said."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from streams.rules.asking import Reading


class Phrases:
    """Finds any of some phrases, whatever their case; Latin ones as whole words: "like" is not in "likely".

    >>> Phrases(["like"]).found_in("I LIKE tea"), Phrases(["like"]).found_in("unlikely")
    (True, False)

    A phrase's longest word is looked for as plain text, and its pattern is tried only where that word stands:
    most texts hold none, and one pattern of all phrases would cost ten times as much. Of words that hold one another
    the shortest is looked for first, and in a text of ASCII alone only words that are such.

    A phrase that has a reading counts only where that says so.
    """

    def __init__(self, phrases: Iterable[str], readings: Mapping[str, Reading] | None = None) -> None:
        wanted = sorted({phrase.strip().lower() for phrase in phrases if phrase.strip()})
        read = readings or {}
        self._phrases = tuple(
            (max(_BREAK.split(phrase), key=len), _pattern(phrase), read.get(phrase)) for phrase in wanted
        )
        words = {word for word, _, _ in self._phrases}
        self._any = tuple(sorted(word for word in words if not any(w in word for w in words - {word})))
        self._ascii = tuple(word for word in self._any if word.isascii())

    def found_in(self, text: str) -> bool:
        lowered = text.lower()
        for word in self._ascii if lowered.isascii() else self._any:
            if word in lowered:
                break
        else:
            return False
        for word, pattern, reading in self._phrases:
            if word not in lowered:
                continue
            if reading is None:
                if pattern.search(lowered):
                    return True
            elif any(map(reading, pattern.finditer(lowered))):
                return True
        return False


_BREAK = re.compile(r"[\s'’]+")


def _pattern(phrase: str) -> re.Pattern[str]:
    text = re.sub(r"(?:\\ )+", r"\\s+", re.escape(phrase)).replace("'", "['’]")
    before = r"(?<![a-z0-9])" if phrase[0].isascii() else ""
    after = r"(?:s|d|ed|es)?(?![a-z0-9])" if phrase[-1].isascii() else ""
    return re.compile(f"{before}{text}{after}")
