"""Search for phrases in a text, such as the phrases with which a user asks to remember something."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from schemas.phrases import ELSEWHERE
from streams.language.asking import Reading
from streams.language.telling import language_of

#: Texts of at most this many characters are searched for phrases of all languages, because their own language may not
#: be recognised.
SHORT_TEXT = 40

_HERE = ("en", "zh")


class Phrases:
    """A set of phrases, with a search whether a text contains one of them. Case is ignored.

    Phrases in Latin letters are found as whole words only: "like" is not found in "likely".

    >>> Phrases(["like"]).found_in("I LIKE tea"), Phrases(["like"]).found_in("unlikely")
    (True, False)

    For speed, each phrase has a search word, its longest word. The phrase's pattern is tried only if the text
    contains the search word, and most texts contain no search word. A single pattern for all phrases would take ten
    times as long. If a search word contains another search word, the first pass looks only for the shorter one. A
    text in ASCII is searched only for words in ASCII.

    If a phrase has a reading, it counts only if the reading returns True. Default phrases in languages other than
    English and Chinese are not searched for in an English or Chinese text of more than `SHORT_TEXT` characters.
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
    """Phrases, prepared for the search.

    `phrases` has for each phrase its search word, its pattern, and its reading (None if it has none). `words` are the
    search words of the first pass, `ascii` those of them that are in ASCII.
    """

    phrases: tuple[tuple[str, re.Pattern[str], Reading | None], ...]
    words: tuple[str, ...]
    ascii: tuple[str, ...]


def _sought(phrases: Sequence[tuple[str, Reading | None]]) -> _Sought:
    with_words = tuple((max(_BREAK.split(phrase), key=len), _pattern(phrase), read) for phrase, read in phrases)
    words = {word for word, _, _ in with_words}
    shortest = tuple(sorted(word for word in words if not any(w in word for w in words - {word})))
    return _Sought(with_words, shortest, tuple(word for word in shortest if word.isascii()))


def _without_dots(lowered: str) -> str:
    """Replace the dotless i, and an i with a combining dot, by a plain i.

    Turkish has a dotted and a dotless i, and lower-casing their capital letters can give any of the three forms.
    """
    if "ı" in lowered or "\u0307" in lowered:
        return lowered.replace("ı", "i").replace("i\u0307", "i")
    return lowered


_BREAK = re.compile(r"[\s'’]+")

_ELSEWHERE = frozenset(_without_dots(phrase) for phrase in ELSEWHERE)

#: Letters of scripts with spaces between words. Plain Latin letters (a-z) are not included, because Chinese texts
#: contain such letters without spaces around them.
_SPACED = re.compile("[\u00aa-\u024f\u0370-\u06ff\u1e00-\u1fff]")


def _pattern(phrase: str) -> re.Pattern[str]:
    text = re.sub(r"(?:\\ )+", r"\\s+", re.escape(phrase)).replace("'", "['’]")
    return re.compile(
        f"{_edge(phrase[0], '<')}{text}{_ENDINGS if phrase[-1].isascii() else ''}{_edge(phrase[-1], '')}"
    )


#: Endings that may follow the last word of a phrase in plain Latin letters.
_ENDINGS = "(?:s|d|ed|es)?"


def _edge(letter: str, side: str) -> str:
    """Return a pattern for the edge of a phrase, so that only whole words are found.

    With `side` `<`, the pattern allows no letter directly before the phrase, and `letter` is the first letter of the
    phrase. Otherwise it allows no letter directly after the phrase, and `letter` is the last one. The pattern is
    empty for scripts without spaces between words.
    """
    if letter.isascii():
        return f"(?{side}![a-z0-9\u00aa-\u024f])"
    return rf"(?{side}!\w)" if _SPACED.match(letter) else ""
