"""Recognition of a text's language: by its script or, in the Latin script, mostly by its function words."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import repeat
from typing import Final

from streams.language.reading_en import LEXICON
from streams.language.word_lists import WORD, folded, sections

LATIN: Final = ("de", "es", "fr", "it", "nl", "pl", "pt", "tr")
_ENGLISH, _UNREAD = "en", "unread"
_MARKS: Final = dict(zip((_ENGLISH, *LATIN, _UNREAD), "0123456789", strict=True))
"""A one-character mark for each language. English is the first, so that it wins a tie with another language."""

LEAST_SHARE: Final = 0.2
"""The minimum share of a text's words that belong to a language, if the text counts as written in this language."""

CLEARLY: Final = 3
"""A text is clearly English if it has more than this many English words for each word of other languages."""

BEGINNING: Final = 600
"""The number of characters of a text that are read to recognise its language."""

GLANCE: Final = 100
"""The number of characters of a text that are tested first. If they are clearly English, no more are read."""

FEW_WORDS: Final = 3
"""An ASCII text of at most this many different words counts as English if no language has any of these words."""

LETTER: Final = 2
"""A letter that identifies a language counts as this many words of the language."""

MOST_LANGUAGES: Final = 3
"""A word that more languages than this have, such as `allerg*`, counts for none of them."""

LONGEST_WORD: Final = 24
"""The maximum length, in characters, of a word whose languages are cached."""

_LISTS: Final = ("self", "life", "courtesy", "asking")
NOTE: Final = re.compile(r"\[[^\[\]\n]*\]")
"""A note in brackets, such as "[shared image: …]". The client wrote it, not the speaker."""

_I: Final = re.compile(r"(?<=\w )I(?!\w)|^I (?=[a-z])")
_HAN: Final = re.compile("[\u4e00-\u9fff]")
_KANA: Final = re.compile("[\u3041-\u309f\u30a1-\u30fa\u30fc\uff66-\uff9f]")
_ROMAN: Final = re.compile("[A-Za-z\u00aa-\u024f\u1e00-\u1eff]")
_OTHER: Final = re.compile(r"[^\W\d_\u0000-\u024f\u1e00-\u1eff]")
_SCRIPTS: Final = (
    ("ko", re.compile("[\uac00-\ud7a3\u1100-\u11ff\u3131-\u318e]"), None),
    ("ru", re.compile("[\u0400-\u04ff]"), re.compile("[іїєґўјљњћђџѓќұқғңһәөү]", re.IGNORECASE)),
    ("ar", re.compile("[\u0620-\u064a\u066e-\u06d3]"), re.compile("[پچژگکیٹڈڑےھہ]")),
    ("th", re.compile("[\u0e01-\u0e5b]"), None),
)
"""For each script: the language that we can read, the script's letters, and the letters of other languages in it.

A text with letters of other languages counts as unreadable.
"""


def _telling() -> tuple[dict[str, str], dict[str, str]]:
    """Return two dictionaries from a function word to the marks of the languages that have it.

    The first has all words, the second only the words that a single language has.
    """
    marks: dict[str, str] = {}
    for language, mark in _MARKS.items():
        for word in dict.fromkeys(sections(language)["function"]):
            if len(word) > 1:  # a single letter identifies no language
                marks[word] = marks.get(word, "") + mark
    return marks, {word: mark for word, mark in marks.items() if len(mark) == 1}


_ALL, _ALONE = _telling()
_alone: Final = _ALONE.get
_NOTHING: Final = repeat("")


class _Known(dict[str, str]):
    """A cache from a word to the marks of the languages whose lists have the word, or a beginning of the word.

    The size of the cache is limited. Endings in the lists are not used, because they identify no language.
    """

    def __init__(self) -> None:
        super().__init__()
        self._words: dict[str, str] = dict.fromkeys(LEXICON.letter_of, _MARKS[_ENGLISH])
        self._beginnings: dict[str, str] = {}
        for language in LATIN:
            listed = sections(language)
            phrases = [phrase for title in _LISTS for phrase in listed[title] if phrase[0] not in "^*"]
            for word in dict.fromkeys(word for phrase in phrases for word in phrase.split()):
                of = self._beginnings if word.endswith("*") else self._words
                of[word.rstrip("*")] = of.get(word.rstrip("*"), "") + _MARKS[language]

    def __missing__(self, word: str) -> str:
        if len(word) == 1:
            return ""
        begun = (self._beginnings.get(word[:length], "") for length in range(2, len(word) + 1))
        marks = "".join(dict.fromkeys("".join((_ALL.get(word, ""), self._words.get(word, ""), *begun))))
        if len(marks) > MOST_LANGUAGES:
            marks = ""
        if len(word) <= LONGEST_WORD:
            if len(self) >= 20_000:
                self.clear()
            self[word] = marks
        return marks


_marks_of: Final = _Known().__getitem__
_LETTERS: Final = {
    language: re.compile("|".join(letters))
    for language in (*LATIN, _UNREAD)
    if (letters := sections(language)["letters"])
}


@lru_cache(maxsize=64)
def language_of(text: str) -> str | None:
    """Return the code (ISO 639-1) of a text's language; None if it is none of the languages that we can read.

    >>> language_of("Ich wohne in Kiel"), language_of("我住在青岛"), language_of("Jag bor i Lund och har en hund")
    ('de', 'zh', None)
    """
    if "[" in text:
        text = NOTE.sub(" ", text)
    plain = text.isascii()
    if not plain and (_HAN.search(text) or _KANA.search(text)):
        kana = len(_KANA.findall(text))
        return "ja" if kana and 8 * kana >= len(_HAN.findall(text)) else "zh"
    # Most texts are English, and can be recognised by their beginning.
    if _clearly_english(text[:GLANCE].lower().split(), 2):
        return _ENGLISH
    if plain:
        return _latin(text)
    text = text[:BEGINNING]
    others = len(_OTHER.findall(text))
    if 2 * others <= len(_ROMAN.findall(text)):
        return _latin(text)
    for language, letters, foreign in _SCRIPTS:
        if 2 * len(letters.findall(text)) > others:
            return None if foreign is not None and foreign.search(text) else language
    return None


def _clearly_english(words: list[str], least: int) -> bool:
    """True if the words of a text are clearly English.

    Only words that a single language has are counted. At least `least` of these must be English, and few may belong
    to other languages.
    """
    marks = "".join(map(_alone, words, _NOTHING))
    english = marks.count(_MARKS[_ENGLISH])
    others = len(marks) - english
    return english >= least and english > CLEARLY * others and english >= LEAST_SHARE * len(words)


def _latin(text: str) -> str | None:
    """Return the language of a text in the Latin script; None if it is not recognised.

    If words that only English has do not decide, the language with the most known words and letters is returned.
    """
    says_i = _I.search(text, 0, BEGINNING) is not None
    text = folded(text[:BEGINNING])
    if "://" in text or "@" in text:  # links and addresses belong to no language
        text = " ".join(part for part in text.split() if "://" not in part and "@" not in part)
    words = list(dict.fromkeys(WORD.findall(text)))
    if _clearly_english(words, 1):
        return _ENGLISH
    marks = "".join(map(_marks_of, words))
    known = {language: marks.count(mark) for language, mark in _MARKS.items()}
    known[_ENGLISH] += says_i
    if not text.isascii():
        for language, letters in _LETTERS.items():
            known[language] += LETTER * (letters.search(text) is not None)
    best = max(known, key=known.__getitem__)
    if not known[best]:
        return _ENGLISH if not words or (len(words) <= FEW_WORDS and text.isascii()) else None
    if best == _UNREAD or known[best] < LEAST_SHARE * len(words):
        return None
    return best
