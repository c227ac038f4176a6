"""Finds English names for topics, by patterns over the classes of words.

Each word is replaced by the letter of its class. A pattern over these letters finds phrases that name something.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from schemas.summaries import TITLE_CHARS
from streams.summaries.rules.word_classes import MOST_CLAUSE_CHARS, Phrase, word_classes

_LETTERS: Final = {
    "noun": "n",
    "determiner": "d",
    "preposition": "p",
    "and": "&",
    "to": "t",
    "being": "e",
    "subject": "i",
    "modal": "m",
    "function": "f",
    "adverb": "r",
    "praise": "j",
    "adjective": "a",
    "generic": "x",
    "irregular": "v",
    "light": "v",
    "verb": "v",
}
"""The letter of each word class.

Words of no class get a letter by their shape: n a noun, N a name, g a word in -ing, | a punctuation mark.
"""

_WORD: Final = re.compile(r"[^\W_]+(?:['’.-][^\W_]+)*|[^\w\s]")

_NOUNS: Final = "[ajx]{0,4}[nNgx]{0,5}[nN]x?"
_PHRASE: Final = re.compile(
    rf"gt[vn](?:d?{_NOUNS})?"  # such as "learning to cook"
    rf"|(?:g[pt]?d{{0,2}})?{_NOUNS}(?:[pt&]d{{0,2}}{_NOUNS})?"  # such as "planning a trip to Oslo" or "tea and cakes"
)
_MOVED: Final = re.compile(
    r"(?:go|come|move|drive|travel|trip|fly|flight|visit|walk|run|listen|ride)\w*|went|came|drove|flew|back"
)
"""Words after which "to" leads to a place, not to a verb."""

_POINTS: Final = re.compile("th(?:is|at|ese|ose)", re.IGNORECASE)

_COMPOUND: Final = frozenset({"time", "life", "world", "photo", "picture", "support", "news", "family"})
"""Generic words that are part of a name if a noun follows: "time management"."""

_ADJECTIVE: Final = ("ous", "ful", "less", "able", "ible", "ive", "ic", "ical", "ish", "est")

ALONE: Final = 0.5
"""The share (see `Phrase`) of a name of one word. A name of several words has 1, or `LONG_SHARE` if it is long."""

LONG, LONG_SHARE = 5, 0.85
NAME_SHARE: Final = 0.5
"""The share of a proper name alone, after a preposition: "to Oslo", "with Anna".

Without a preposition, the person is probably addressed, and the name is no topic.
"""

BARE: Final = 0.8
"""A factor for a phrase without an article or a preposition before it, because its first word may be no noun."""


def phrases(clause: str, *, opening: bool) -> Iterator[Phrase]:
    """Yield the phrases of a clause that name something. `opening` is true if the clause begins its sentence."""
    words = list(_WORD.finditer(clause[:MOST_CLAUSE_CHARS]))
    letters = _letters([found[0] for found in words], opening=opening)
    for found in _PHRASE.finditer(letters):
        first, last = found.span()
        while letters[first] == "j" or (letters[first] == "x" and words[first][0] not in _COMPOUND):
            first += 1
        for end in _ends(letters, first, last):
            text = clause[words[first].start() : words[end - 1].end()]
            share = _share(letters, first, end)
            if share and len(text) <= TITLE_CHARS and not text.endswith(("'s", "’s")):
                yield Phrase(text, share)


def _ends(letters: str, first: int, last: int) -> Iterator[int]:
    """Yield the indexes at which the phrase may end: its whole length, and before an addition such as "of the …"."""
    yield last
    for place in range(last - 1, first, -1):
        if letters[place] in "pt&" and letters[first] != "g" and letters[place - 1] in "nNx":
            yield place
            return


def _share(letters: str, first: int, end: int) -> float:
    said = letters[first:end]
    size = len(said) - sum(map(said.count, "dpt&"))
    share = ALONE if size == 1 else LONG_SHARE if size >= LONG else 1.0
    before = letters[first - 1] if first else "|"
    if said == "N":
        return NAME_SHARE if before in "pt" else 0.0
    if size == 1 and (before == "e" or letters[max(0, first - 2) : first] in ("er", "ef")):  # "it was so chaotic"
        return 0.0
    if before not in "dptjax&" and said[0] != "g":
        share *= BARE
    return share


def _letters(words: list[str], *, opening: bool) -> str:
    """Return the letter of each word, by its class and by the word before it."""
    known = _letter_of()
    letters: list[str] = []
    before = "|"
    for place, word in enumerate(words):
        letter = _letter(word, known, capital=place > 0 or not opening)
        if letter == "v" and before == "d" and _POINTS.fullmatch(words[place - 1]):
            before = "i"  # here "this" or "that" is a subject, as in "that makes"
        after_name = before in "djapx" or (before == "t" and place > 1 and _MOVED.fullmatch(words[place - 2].lower()))
        if letter == "v" and after_name and before not in "xt":
            letter = "g" if word.endswith("ing") else "a" if word.endswith("ed") else "n"
        elif letter == "v" and word.endswith("ing") and word.lower() not in known:
            letter = "g"
        elif letter == "n" and (before in "im" or (before == "t" and not after_name)):
            letter = "v"
        letters.append(letter)
        before = letter
    return "".join(letters)


def _letter(word: str, known: dict[str, str], *, capital: bool) -> str:
    lower = word.lower().replace("’", "'")
    if not lower[0].isalnum():
        return "|" if lower != "&" else "&"
    if letter := known.get(lower):
        return letter
    if lower.endswith(("'ve", "'d", "'ll", "'re", "n't")):
        return "f"
    if lower[0].isdigit():
        return "d"
    if capital and word[0].isupper():
        return "N"
    if lower.endswith("'s") and (letter := known.get(lower[:-2])):
        return "n" if letter in "nvx" else letter
    if len(lower) > 4:
        if lower.endswith("ing"):
            return "g"
        if lower.endswith("ed"):
            return "v"
        if lower.endswith("ly"):
            return "r"
        if lower.endswith(_ADJECTIVE):
            return "a"
    return "n" if len(lower) > 1 else "f"


@lru_cache(maxsize=1)
def _letter_of() -> dict[str, str]:
    classes = word_classes("naming_en.txt")
    found: dict[str, str] = {}
    for title, letter in _LETTERS.items():
        for word in classes[title]:
            for form in _forms(word) if title == "verb" else (word,):
                found.setdefault(form, letter)
    return found


def _forms(verb: str) -> tuple[str, ...]:
    """Return a verb's base form and its regular forms, except the form in -ing, which is recognised by its ending."""
    bare = verb.removesuffix("e")
    third, past = f"{verb}s", f"{bare}ed"
    if verb.endswith("y") and verb[-2] not in "aeou":
        third, past = f"{verb[:-1]}ies", f"{verb[:-1]}ied"
    elif verb.endswith(("s", "x", "z", "ch", "sh", "o")):
        third = f"{verb}es"
    return verb, third, past, f"{verb}{verb[-1]}ed"
