"""Finds the noun phrases of a clause, by patterns over the classes of its words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from schemas.summaries import TITLE_CHARS
from streams.summaries.rules.sentences import content
from streams.summaries.rules.tagging import ADJECTIVE, NAME, NOUN, VERB, Tongue, Word, words_of

MOST_CLAUSE_CHARS: Final = 300
"""Maximum number of characters of a clause that are read."""

SPECIFIC_CHARS: Final = 3
"""A word of this many Chinese or Japanese characters says as much as two English words."""

_PATTERNS: Final[dict[Tongue, re.Pattern[str]]] = {
    "en": re.compile(r"(?P<head>(?<=d)[anN]*[nN]a(?=\||$)|[anN]*[nN])(?:pd*(?P<of>[anN]*[nN]))?"),
    "zh": re.compile(r"(?P<head>[anN]*[nN](?:v(?=[|p]|$))?)(?:p(?P<of>[anN]*[nN]))?"),
    "ja": re.compile(r"(?P<head>n+)(?:p(?P<of>n+))?"),
}
_SPACED: Final = re.compile("n+(?:p{1,2}n+)?")
MOST_WORDS: Final = 5
"""Maximum number of words of a phrase in the other languages, where every run of nouns is a phrase."""


_EMPTY: Final = re.compile("[事人话]")
"""Words that are named by what stands before 的, which tells no more than an adjective: 气人的事."""


class NounPhrase(NamedTuple):
    """A noun phrase. `keys` are its words with a meaning, in the form in which they are compared.

    `size` is the number of its words; a long word of Chinese or Japanese counts as two. `letters` are the classes of
    its words, `words` the first and the last one, and `around` those before and after it, "" for none.
    """

    text: str
    keys: tuple[str, ...]
    size: int
    letters: str
    words: tuple[str, str]
    around: tuple[str, str]


class Read(NamedTuple):
    """The noun phrases of a clause, and the keys of all its words with a meaning."""

    phrases: tuple[NounPhrase, ...]
    keys: frozenset[str]


def read_clause(clause: str, tongue: Tongue) -> Read:
    """Return what a clause names. Phrases are the whole ones, and their parts before and after "of" or 的."""
    clause = clause[:MOST_CLAUSE_CHARS]
    words = words_of(clause, tongue)
    phrases = [_phrase(clause, words, *span) for span in _spans(clause, words, tongue)]
    return Read(tuple(filter(None, phrases)), frozenset(key for word in words if (key := _key(clause, word))))


def _spans(clause: str, words: list[Word], tongue: Tongue) -> Iterator[tuple[int, int]]:
    """Yield the indexes of the first words of phrases, and those after their last words."""
    letters = "".join(word.letter for word in words)
    if pattern := _PATTERNS.get(tongue):
        for found in pattern.finditer(letters):
            first, end = found.span("of")
            if first < 0 or not _EMPTY.fullmatch(clause[words[first].start : words[end - 1].end]):
                yield from sorted({found.span(), found.span("head"), found.span("of")} - {(-1, -1)})
        return
    for first in range(len(words)):
        for end in range(first + 1, min(len(words), first + MOST_WORDS) + 1):
            if _SPACED.fullmatch(letters, first, end):
                yield first, end


def _phrase(clause: str, words: list[Word], first: int, end: int) -> NounPhrase | None:
    inside = words[first:end]
    text = clause[inside[0].start : inside[-1].end]
    keys = tuple(dict.fromkeys(key for word in inside if (key := _key(clause, word))))
    named = any(word.letter in (NOUN, NAME) and _key(clause, word) for word in inside)
    if not keys and text[0] > "\u3000":
        named, keys = True, (text,)  # a word that is cut into its characters: 猫粮
    if not named or not 1 < len(text) <= TITLE_CHARS:
        return None
    long = len(keys) == 1 and len(text) >= SPECIFIC_CHARS and text[0] > "\u3000"
    edges = inside[0], inside[-1], words[first - 1] if first else None, words[end] if end < len(words) else None
    start, last, before, after = (clause[word.start : word.end] if word else "" for word in edges)
    letters = "".join(word.letter for word in inside)
    return NounPhrase(text, keys, 2 if long else len(keys), letters, (start, last), (before, after))


def _key(clause: str, word: Word) -> str:
    """Return the form in which a word is compared, or "" if it has no meaning by itself."""
    if word.letter not in (NOUN, NAME, ADJECTIVE, VERB):
        return ""
    text = clause[word.start : word.end]
    if text.isascii():
        return min(content(text), default="")
    return text.casefold() if len(text) > 1 else ""
