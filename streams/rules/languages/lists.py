"""What is known of a language: its file's words, and the patterns that find them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final

FOLDER: Final = Path(__file__).parent

CODES: Final = ("ar", "de", "es", "fr", "it", "ja", "ko", "nl", "pl", "pt", "ru", "th", "tr")
"""The languages with lists (ISO 639-1). English and Chinese are read by rules of their own."""

UNSPACED: Final = {"ja": 2, "th": 4}
"""Languages without spaces between words, and about how many letters a word has."""

LONG_WORD: Final = {"ar": 4, "ja": 1_000, "ko": 3, "th": 1_000}
"""As many letters a long word has at the least, where that is not 5; where nothing parts words, none is known."""

_POINTS_OF_ARABIC: Final = re.compile("[\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u0640]")
_FOLDED: Final = str.maketrans("أإآٱىةئؤёı’", "اااايهيوеi'")


_BEGINNING: Final = r"^\W*(?:(?:no|non|não|nie|не|لا) )?"


def folded(text: str) -> str:
    """In lower case, with one form of each letter of Arabic, and without its points; without Turkish kinds of i."""
    if text.isascii():
        return text.lower()
    text = unicodedata.normalize("NFC", text.replace("İ", "i")).lower().translate(_FOLDED)
    return _POINTS_OF_ARABIC.sub("", text)


def sections(language: str) -> dict[str, list[str]]:
    """What a language's file lists, by section: a line in brackets begins one, and `#` a comment.

    `_` stands for a space; where spaces part words, `*` at either end for any letters, and `^` for a sentence's
    beginning, or a negation there. Elsewhere words are regular expressions.
    """
    found: dict[str, list[str]] = {}
    words: list[str] = []
    for line in (FOLDER / f"{language}.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            words = found.setdefault(line.strip("[]"), [])
        elif not line.startswith("#"):
            words += [folded(word.replace("_", " ")) for word in line.split()]
    return found


def _pattern(words: Sequence[str], language: str, *, at_start: bool = False) -> re.Pattern[str]:
    """Finds any of the words; `at_start`: those that have no `*` before them have to begin what is looked through."""
    ordered = sorted(dict.fromkeys(words), key=len, reverse=True)
    if language in UNSPACED:
        return re.compile("|".join(ordered))
    # An article, and small words before it, are written together with what follows.
    before = r"(?<!\w)(?:و|ف)?(?:ب|ل|ك)?(?:ال)?" if language == "ar" else r"(?<!\w)"

    def one(word: str) -> str:
        first = word.startswith("^")
        start = _BEGINNING if first else "" if word.startswith("*") else r"^\W*" if at_start else before
        start += r"(?<!\w)\w*" if word.lstrip("^").startswith("*") else ""
        return start + re.escape(word.strip("^*")) + ("" if word.endswith(("*", "'")) else r"(?!\w)")

    return re.compile("|".join(map(one, ordered)), re.MULTILINE)


class Lists:
    """A language's words, compiled. All are looked for in text that is `folded`."""

    def __init__(self, language: str) -> None:
        found = sections(language)
        self.letters_of_a_word = UNSPACED.get(language)
        #: In these nobody says "I" where it is clear who is meant.
        self.unsaid = language in ("ja", "ko", "th")
        self.own, self.life, self.courtesy, self.you = (
            _pattern(found[title], language) for title in ("self", "life", "courtesy", "you")
        )
        self.long_word = LONG_WORD.get(language, 5)
        #: What stands in any text.
        self.common = frozenset(found.get("function", ()))
        self.asking = _pattern(found["asking"], language, at_start=not self.unsaid)


@cache
def lists_of(language: str) -> Lists:
    """One of `CODES`."""
    return Lists(language)
