"""Names that a text states, and the names that messages hold."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cached_property
from typing import Final

from streams.language.faithful import WORD, begins_sentence, plain_word
from streams.language.scripts import script_of
from streams.summaries.grounding.word_stems import spaced_language_of

SAME_CHARS: Final = 4
"""The minimum number of characters that two spellings of a name have in common at their beginning."""

CAPITALS: Final = 0.2
"""If this share of the words within sentences has a capital letter, capitals do not mark names, as in German."""

#: A name of code, or one that is written like it: `max_tokens`, gpt4, LaTeX, iPhone.
_IDENTIFIER: Final = re.compile(
    r"(?<![A-Za-z0-9])"
    r"(?:[A-Za-z][A-Za-z0-9]*(?:[_.][A-Za-z0-9]+)+|[A-Za-z]+[0-9][A-Za-z0-9]*|[A-Za-z]*[a-z][A-Z]\w*)"
)
#: Summaries abbreviate: "open a PR" for "open a pull request".
_ABBREVIATION: Final = re.compile(r"[A-Z]{2,4}s?")
_NO_NAMES: Final = frozenset({"i", "mr", "mrs", "ms", "dr", "prof"})
_SEPARATORS: Final = re.compile(r"[\W_]+")
_SURNAMES: Final = (
    "李王张張刘劉陈陳杨楊赵趙吴吳周徐孙孫朱胡郭何林罗羅郑鄭梁谢謝宋唐许許邓鄧冯馮"
    "韩韓曹曾彭萧蔡潘袁董余苏蘇叶葉吕魏蒋蔣杜秦孟阎薛"
)
#: Names with a form of address. Without one, names in Chinese, Japanese and Korean look like other words.
_ADDRESSED: Final = (
    re.compile(f"[小老阿][{_SURNAMES}]|[{_SURNAMES}](?:总|经理|老师|医生|主任|先生|女士|阿姨|叔叔|师傅|姐|哥)"),
    re.compile(r"(?:[\u30a1-\u30fa\u30fc]+|[\u3400-\u9fff]{1,3})(?<![父母兄姉奥娘])(?=さん|くん|ちゃん|氏)"),
    re.compile(r"[\uac00-\ud7a3]{2,3}(?= [씨님])"),
)


def identifiers_in(text: str) -> list[str]:
    """Return the identifiers of a text, which are the same in every language.

    >>> identifiers_in("set max_tokens in the iPhone app to 5s")
    ['max_tokens', 'iPhone']
    """
    return _IDENTIFIER.findall(text)


def addressed_in(text: str) -> list[str]:
    """Return the names that a form of address marks.

    >>> addressed_in("让小秦问"), addressed_in("田村さんに聞く")
    (['小秦'], ['田村'])
    """
    return [name for pattern in _ADDRESSED for name in pattern.findall(text)]


def capitalized_in(text: str) -> Iterator[str]:
    """Yield the words that a capital letter marks as names.

    The first word of a sentence has one in any case, and so have the words of a title. Among Chinese, Japanese or
    Korean characters, every word with a capital letter is a name. Abbreviations are left out.

    >>> list(capitalized_in("Ask Priya about the API")), list(capitalized_in("用Kafka"))
    (['Priya'], ['Kafka'])
    """
    unspaced = script_of(text) is not None
    if not unspaced and _is_title(text):
        return
    for found in WORD.finditer(text):
        word = found[0]
        if not word[0].isupper() or _ABBREVIATION.fullmatch(word) or plain_word(word) in _NO_NAMES:
            continue
        if unspaced or not begins_sentence(text[: found.start()]):
            yield word


class KnownNames:
    """The names that messages may hold. `text` are the messages, one below the other."""

    def __init__(self, text: str) -> None:
        self._text = text

    def has(self, name: str) -> bool:
        """Return whether the messages have a name, also with another ending or other separators."""
        plain = _unaccented(plain_word(name))
        if plain in self._words or _squeezed(name) in self._squeezed:
            return True
        return any(_is_spelling(plain, word) for word in self._beginnings.get(plain[:SAME_CHARS], ()))

    def states(self, text: str) -> bool:
        """Return whether the messages have all names of a text, which is in their language."""
        if not all(name in self._text for name in addressed_in(text)):
            return False
        marked = script_of(text) is not None or not self._capitalizes
        return not marked or all(map(self.has, capitalized_in(text)))

    @cached_property
    def _words(self) -> frozenset[str]:
        return frozenset(_unaccented(plain_word(word)) for word in WORD.findall(self._text))

    @cached_property
    def _beginnings(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for word in self._words:
            found.setdefault(word[:SAME_CHARS], []).append(word)
        return found

    @cached_property
    def _squeezed(self) -> str:
        return _squeezed(self._text)

    @cached_property
    def _capitalizes(self) -> bool:
        if spaced_language_of(self._text) == "de":
            return True
        inner = [
            found[0]
            for line in self._text.splitlines()
            for found in WORD.finditer(line)
            if len(found[0]) > 1 and not begins_sentence(line[: found.start()])
        ]
        return sum(word[0].isupper() for word in inner) > CAPITALS * len(inner)


def _is_title(text: str) -> bool:
    """Return whether a line has capitals as a title has: in all its longer words, which are three or more."""
    longer = [word for word in WORD.findall(text) if len(word) >= SAME_CHARS]
    return len(longer) > 2 and all(word[0].isupper() for word in longer)


def _is_spelling(one: str, other: str) -> bool:
    """Return whether two words differ only in their last letters, as Berlin and Berliner."""
    least = max(SAME_CHARS, min(len(one), len(other)) - 1)
    return len(one) >= least and one[:least] == other[:least]


def _unaccented(word: str) -> str:
    return "".join(char for char in unicodedata.normalize("NFKD", word) if not unicodedata.combining(char))


def _squeezed(text: str) -> str:
    """Return a text without blanks and marks, so that "PostgreSQL 16" is found in "postgresql16"."""
    return _SEPARATORS.sub("", text).casefold()
