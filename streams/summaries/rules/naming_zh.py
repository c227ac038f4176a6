"""Finds Chinese names for topics.

A clause is cut at words that are not part of a name. The pieces between these words are possible names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from streams.summaries.rules.word_classes import MOST_CLAUSE_CHARS, Phrase, word_classes

FEWEST: Final = 2
MOST: Final = 16
"""The minimum and the maximum number of characters of a name."""

SHORT_SHARE: Final = 0.75
"""The share (see `Phrase`) of a name of two characters. Longer names have 1, very long names `LONG_SHARE`."""

LONG, LONG_SHARE = 11, 0.85
PART_SHARE: Final = 0.6
"""The share of a part of a name, relative to the share of a whole name."""

_CJK: Final = "\u4e00-\u9fff"
_PIECE: Final = re.compile(rf"[{_CJK}A-Za-z0-9][{_CJK}A-Za-z0-9·.+#-]*|[《“「][^《》“”「」]{{1,20}}[》”」]")
_REACHES: Final = re.compile(r"\d{3}|@|\.[a-z]{2}")
"""Long numbers and addresses: a phrase that contains one is no name."""

_CHINESE: Final = re.compile(f"[{_CJK}]")
_FOREIGN: Final = re.compile("[A-Za-z][A-Za-z0-9.+#-]+")


class _Words(NamedTuple):
    words: re.Pattern[str]
    """The words at which a clause is cut, and words that contain one of these but are not cut.

    `cut` has only the words at which a clause is cut.
    """
    cut: frozenset[str]
    lead: re.Pattern[str]
    trail: re.Pattern[str]
    generic: re.Pattern[str]
    attribute: frozenset[str]


def phrases(clause: str) -> Iterator[Phrase]:
    """Yield the phrases of a clause that name something."""
    words = _words()
    for piece in _PIECE.findall(clause[:MOST_CLAUSE_CHARS]):
        if piece[0] in "《“「":
            yield Phrase(piece, 1.0)
            continue
        for chunk in _chunks(piece, words):
            name = _bare(chunk, words)
            if _names(name, words):
                yield Phrase(name, _share(name))
            owner, joint, owned = name.rpartition("的")
            if joint:
                for part in (owner, *(() if owned in words.attribute else (owned,))):
                    if _names(bare := _bare(part, words), words):
                        yield Phrase(bare, _share(bare) * (1.0 if owned in words.attribute else PART_SHARE))


def _chunks(piece: str, words: _Words) -> Iterator[str]:
    start = 0
    for found in words.words.finditer(piece):
        if found[0] in words.cut:
            yield piece[start : found.start()]
            start = found.end()
    yield piece[start:]


def _bare(chunk: str, words: _Words) -> str:
    """Remove the words at the beginning and at the end of a piece that are not part of the name."""
    lead, trail = words.lead.match(chunk), words.trail.search(chunk)
    return chunk[lead.end() if lead else 0 : trail.start() if trail else None]


def _names(name: str, words: _Words) -> bool:
    if _REACHES.search(name) or words.generic.fullmatch(name):
        return False
    if _CHINESE.search(name):
        return FEWEST <= len(name) <= MOST
    return _FOREIGN.fullmatch(name) is not None


def _share(name: str) -> float:
    return SHORT_SHARE if len(name) == FEWEST else LONG_SHARE if len(name) >= LONG else 1.0


def _any(words: Iterable[str]) -> str:
    return "|".join(sorted(map(re.escape, set(words)), key=lambda word: (-len(word), word)))


@lru_cache(maxsize=1)
def _words() -> _Words:
    classes = word_classes("naming_zh.txt")
    held = _any(classes["held"])
    return _Words(
        re.compile(_any([*classes["cut"], *classes["held"]])),
        frozenset(classes["cut"]),
        re.compile(f"(?:(?!{held})(?:{_any(classes['lead'])}))++"),
        re.compile(f"(?:{_any(classes['trail'])})++$"),
        re.compile(f"(?:{_any(classes['generic'])})++"),
        frozenset(classes["attribute"]),
    )
