"""The word lists of a language, read from its file, and the search for their words in a sentence."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple, Protocol

FOLDER: Final = Path(__file__).parent / "languages"

CODES: Final = ("ar", "de", "es", "fr", "it", "ja", "ko", "nl", "pl", "pt", "ru", "th", "tr")
"""The codes (ISO 639-1) of the languages that are read by word lists. English and Chinese have their own modules."""

UNSPACED: Final = {"ja": 2, "th": 4}
"""Languages without spaces between words, with the average number of letters of a word (approximate)."""

LONG_WORD: Final = {"ar": 4, "ko": 3}
"""By language, the minimum number of letters of a word that counts as long. In all other languages it is 5."""

WORD: Final = re.compile(r"[^\W\d_]+'?")

_POINTS_OF_ARABIC: Final = re.compile("[\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06ed\u0640]")
_FOLDED: Final = str.maketrans("أإآٱىةئؤёı’", "اااايهيوеi'")
#: The Arabic article and the particles before it, which are written together with the next word.
_BEFORE_IN_ARABIC: Final = re.compile("[وف]?[بلك]?(?:ال)?")
_NEGATIONS: Final = frozenset(("no", "non", "não", "nie", "не", "لا"))


def folded(text: str) -> str:
    """Return a text in lower case, without differences in spelling that the word lists ignore.

    Variants of an Arabic letter become one letter, Arabic diacritics are removed, and Turkish kinds of i become `i`.
    """
    if text.isascii():
        return text.lower()
    text = unicodedata.normalize("NFC", text.replace("İ", "i")).lower().translate(_FOLDED)
    return _POINTS_OF_ARABIC.sub("", text)


@cache
def sections(language: str) -> dict[str, list[str]]:
    """Return the words of a language's file, by section. A line in brackets begins a section, `#` begins a comment.

    `_` stands for a space. In languages with spaces between words, `*` at the beginning or end of a word stands for
    any letters. A word with `^` must be the first word of a sentence, not counting negations. In languages without
    spaces, words are regular expressions.
    """
    found: dict[str, list[str]] = {}
    words: list[str] = []
    for line in (FOLDER / f"{language}.txt").read_text(encoding="utf-8").splitlines():
        if line.startswith("["):
            words = found.setdefault(line.strip("[]"), [])
        elif not line.startswith("#"):
            words += [folded(word.replace("_", " ")) for word in line.split()]
    return found


class Found(NamedTuple):
    """The result of searching a sentence.

    `courtesies`, `you` and `words` are counts; courtesies are not counted in `words`. `own` is true if the sentence
    has the first person. `life` are the words about a person's life.
    """

    courtesies: int
    you: int
    own: bool
    life: frozenset[str]
    #: True if the sentence has a long word that is neither listed nor a function word.
    news: bool
    words: int
    #: `asks`: the sentence is a question because of its words. `asks_if_short`: it is a question only if it is short.
    asks: bool
    asks_if_short: bool


class Lists(Protocol):
    """The word lists of a language. They are searched in text that is `folded`."""

    def find(self, sentence: str) -> Found:
        """Search a sentence, or a part of a sentence."""


class _Section:
    """Listed words of one kind: whole words, beginnings of words, endings of words, and phrases of several words."""

    def __init__(self, listed: Iterable[str], language: str) -> None:
        self._words, self._beginnings, self._endings = set[str](), set[str](), set[str]()
        self._before = _BEFORE_IN_ARABIC if language == "ar" else None
        #: Phrases, by their first word: each phrase's further words, and True if its last word is only a beginning.
        self._phrases: dict[str, list[tuple[list[str], bool]]] = {}
        for word in listed:
            parts = WORD.findall(word)
            if word.startswith("*"):
                self._endings.add(word[1:])
            elif len(parts) > 1:
                self._phrases.setdefault(parts[0], []).append((parts[1:], word.endswith("*")))
            elif word.endswith("*"):
                self._beginnings.add(word[:-1])
            else:
                self._words.add(word)

    def entry(self, word: str) -> str:
        """Return the listed word, beginning or ending that matches `word`; an empty text if none matches."""
        if self._before is None:
            return self._plain(word)
        before = self._before.match(word)
        assert before is not None, "it matches nothing, too"
        cuts = (word[place:] for place in range(before.end() + 1))
        return next(filter(None, map(self._plain, cuts)), "")

    def _plain(self, word: str) -> str:
        if word in self._words:
            return word
        for length in range(len(word), 0, -1):
            if word[:length] in self._beginnings:
                return word[:length]
        return next((word[place:] for place in range(len(word)) if word[place:] in self._endings), "")

    def phrase(self, words: Sequence[str], place: int) -> int:
        """Return the number of words of the longest listed phrase that begins at `words[place]`; 0 without one."""
        longest = 0
        for rest, is_beginning in self._phrases.get(words[place], ()):
            found = words[place + 1 : place + 1 + len(rest)]
            same = found == rest
            if is_beginning and not same and len(found) == len(rest):
                same = found[:-1] == rest[:-1] and found[-1].startswith(rest[-1])
            if same:
                longest = max(longest, 1 + len(rest))
        return longest

    def among(self, words: Sequence[str]) -> Iterator[str]:
        """Yield the listed phrases that occur in the words."""
        for place, word in enumerate(words):
            if word in self._phrases and (length := self.phrase(words, place)):
                yield " ".join(words[place : place + length])


class _Kinds(NamedTuple):
    """The kinds of words to which a single word belongs."""

    own: bool
    own_first: bool
    life: str
    courtesy: bool
    you: bool
    asks: bool
    asks_first: bool
    news: bool


class SpacedLists(dict[str, _Kinds]):
    """The word lists of a language with spaces between words. As a dict, it caches words' kinds, up to a limit."""

    def __init__(self, language: str) -> None:
        super().__init__()
        found = sections(language)
        self._common = frozenset(found.get("function", ()))
        self._long = LONG_WORD.get(language, 5)
        #: In Korean, a question word at any position makes a sentence a question. In other languages only the first
        #: word can be a question word; but an ending that marks a question counts at any position.
        self._asks_anywhere = language == "ko"
        first = [word for word in found["asking"] if not (self._asks_anywhere or word.startswith("*"))]
        self._own, self._own_first, self._life, self._courtesy, self._you, self._asking, self._asking_first = (
            _Section(listed, language)
            for listed in (
                [word for word in found["self"] if not word.startswith("^")],
                [word[1:] for word in found["self"] if word.startswith("^")],
                found["life"],
                found["courtesy"],
                found["you"],
                [word for word in found["asking"] if word not in first],
                first,
            )
        )

    def __missing__(self, word: str) -> _Kinds:
        own, life, courtesy = (part.entry(word) for part in (self._own, self._life, self._courtesy))
        kinds = _Kinds(
            own=bool(own),
            own_first=bool(self._own_first.entry(word)),
            life=life,
            courtesy=bool(courtesy),
            you=bool(self._you.entry(word)),
            asks=bool(self._asking.entry(word)),
            asks_first=bool(self._asking_first.entry(word)),
            news=not (own or life or courtesy) and len(word) >= self._long and word not in self._common,
        )
        if len(self) >= 20_000:
            self.clear()
        self[word] = kinds
        return kinds

    def find(self, sentence: str) -> Found:
        words = WORD.findall(sentence)
        told = list(self._without_courtesies(words))
        kinds = [self[word] for word in told]
        first = next((kind for word, kind in zip(told, kinds, strict=True) if word not in _NEGATIONS), None)
        own = any(kind.own for kind in kinds) or (first is not None and first.own_first) or any(self._own.among(told))
        life = [kind.life for kind in kinds if kind.life]
        asks = any(kind.asks for kind in kinds) or any(self._asking.among(told))
        asks_first = bool(told) and (kinds[0].asks_first or self._asking_first.phrase(told, 0) > 0)
        return Found(
            len(words) - len(told),
            sum(self[word].you for word in words),
            own,
            frozenset((*life, *self._life.among(told))),
            any(kind.news for kind in kinds),
            len(told),
            asks=asks and self._asks_anywhere,
            asks_if_short=asks or asks_first,
        )

    def _without_courtesies(self, words: Sequence[str]) -> Iterator[str]:
        place = 0
        while place < len(words):
            length = self._courtesy.phrase(words, place) or self[words[place]].courtesy
            if not length:
                yield words[place]
            place += length or 1


class UnspacedLists:
    """The word lists of a language without spaces between words. Listed words are found at any position of a text."""

    def __init__(self, language: str) -> None:
        found = sections(language)
        self._letters_of_a_word = UNSPACED[language]
        self._own, self._life, self._courtesy, self._you, self._asking = (
            re.compile("|".join(sorted(found[title], key=len, reverse=True)))
            for title in ("self", "life", "courtesy", "you", "asking")
        )

    def find(self, sentence: str) -> Found:
        told, courtesies = self._courtesy.subn(" ", sentence)
        return Found(
            courtesies,
            len(self._you.findall(sentence)),
            self._own.search(told) is not None,
            frozenset(found[0] for found in self._life.finditer(told)),
            news=False,
            words=sum(map(len, WORD.findall(told))) // self._letters_of_a_word,
            asks=self._asking.search(sentence) is not None,
            asks_if_short=False,
        )


@cache
def lists_of(language: str) -> Lists:
    """Return the lists of a language, one of `CODES`."""
    return UnspacedLists(language) if language in UNSPACED else SpacedLists(language)
