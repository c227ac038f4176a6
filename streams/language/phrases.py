"""Search for any of some phrases in a text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from schemas.phrases import ELSEWHERE
from streams.language.asking import Reading
from streams.language.telling import language_of

#: In a text of at most this many characters the language may not be recognised.
SHORT_TEXT = 40

_HERE = ("en", "zh")


class Phrases:
    """Finds any of some phrases, ignoring case; Latin ones as whole words: "like" is not in "likely".

    >>> Phrases(["like"]).found_in("I LIKE tea"), Phrases(["like"]).found_in("unlikely")
    (True, False)

    It looks for a phrase's longest word as plain text, and tries the phrase's pattern only where that word is found:
    most texts have none, and one pattern of all phrases would cost ten times as much. Of words that contain one
    another it looks for the shortest first; in a text of ASCII alone, it looks only for words of ASCII.

    A phrase that has a reading counts only where the reading returns True. Our phrases in languages other than
    English and Chinese are not searched in a longer English or Chinese text.
    """

    def __init__(self, phrases: Iterable[str], readings: Mapping[str, Reading] | None = None) -> None:
        wanted = sorted({_without_dots(phrase.strip().lower()) for phrase in phrases if phrase.strip()})
        read = {_without_dots(phrase.lower()): reading for phrase, reading in (readings or {}).items()}
        self._here = _sought([(phrase, read.get(phrase)) for phrase in wanted if phrase not in _ELSEWHERE])
        self._all = _sought([(phrase, read.get(phrase)) for phrase in wanted])
        self._some_elsewhere = any(phrase in _ELSEWHERE for phrase in wanted)

    def found_in(self, text: str) -> bool:
        sought = self._all
        if self._some_elsewhere and text[SHORT_TEXT:] and language_of(text) in _HERE:
            sought = self._here
        lowered = text.lower()
        if lowered.isascii():
            words = sought.ascii
        else:
            lowered, words = _without_dots(lowered), sought.words
        for word in words:
            if word in lowered:
                break
        else:
            return False
        for word, pattern, reading in sought.phrases:
            if word not in lowered:
                continue
            if reading is None:
                if pattern.search(lowered):
                    return True
            elif any(map(reading, pattern.finditer(lowered))):
                return True
        return False


class _Sought(NamedTuple):
    """Phrases, each as search word, pattern and reading; the search words to try first; the ASCII ones of these."""

    phrases: tuple[tuple[str, re.Pattern[str], Reading | None], ...]
    words: tuple[str, ...]
    ascii: tuple[str, ...]


def _sought(phrases: Sequence[tuple[str, Reading | None]]) -> _Sought:
    with_words = tuple((max(_BREAK.split(phrase), key=len), _pattern(phrase), read) for phrase, read in phrases)
    words = {word for word, _, _ in with_words}
    shortest = tuple(sorted(word for word in words if not any(w in word for w in words - {word})))
    return _Sought(with_words, shortest, tuple(word for word in shortest if word.isascii()))


def _without_dots(lowered: str) -> str:
    """Merge the dotted and the dotless i: Turkish has both, and other languages have one capital for both."""
    if "ı" in lowered or "\u0307" in lowered:
        return lowered.replace("ı", "i").replace("i\u0307", "i")
    return lowered


_BREAK = re.compile(r"[\s'’]+")

_ELSEWHERE = frozenset(_without_dots(phrase) for phrase in ELSEWHERE)

#: Letters of scripts with spaces between words, without plain Latin, which Chinese texts have without spaces.
_SPACED = re.compile("[\u00aa-\u024f\u0370-\u06ff\u1e00-\u1fff]")


def _pattern(phrase: str) -> re.Pattern[str]:
    text = re.sub(r"(?:\\ )+", r"\\s+", re.escape(phrase)).replace("'", "['’]")
    return re.compile(
        f"{_edge(phrase[0], '<')}{text}{_ENDINGS if phrase[-1].isascii() else ''}{_edge(phrase[-1], '')}"
    )


#: Endings that the last word of a phrase in plain Latin letters may have.
_ENDINGS = "(?:s|d|ed|es)?"


def _edge(letter: str, side: str) -> str:
    """Return a pattern that allows no letter to follow, or with `<` to precede."""
    if letter.isascii():
        return f"(?{side}![a-z0-9\u00aa-\u024f])"
    return rf"(?{side}!\w)" if _SPACED.match(letter) else ""
