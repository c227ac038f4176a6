"""The local estimator: how much an exchange is worth remembering, 0-10, read off the text itself.

It stands in for a model when none is configured, so it has to be free, fast and repeatable. It does not
understand; it counts the marks that statements about somebody's life carry (first person, relations, names,
times, plans, tastes) against those of small talk (courtesies, questions, talk about "you"). What the marks are
and how a text is read for them: `signals.py`, `reading_en.py`, `reading_zh.py`.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Final

from streams.rules import reading_en, reading_zh
from streams.rules.reading_en import read_english
from streams.rules.reading_zh import read_chinese
from streams.rules.signals import Reading

READ_CHARS: Final = 2_000
"""What is read of a message. A longer one is a pasted document; its beginning says whose it is."""

REPLY_SHARE: Final = 0.7
"""What a mark in the reply is worth, next to one in the user's own words."""

FREE_POINTS: Final = 0.5
"""What any talk makes; each point above it is one of ten."""

LENGTH_POINTS: Final = 1.2
"""Points for each doubling of the words beyond a short sentence: who says more about himself, says more."""

SHORT_WORDS: Final = 5
LONG_WORDS: Final = 36
"""Between these length counts."""

SPARSE_WORDS: Final = 11
"""Below this a message counts up to double: where little is said, what is said is the point."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What an exchange is worth, and why.

    `rating` is what a model would answer; `score` is the same before rounding, for ranking. `signals` names
    what was found in the user's words, then, prefixed `reply:`, what was found in the assistant's.
    """

    rating: int
    score: float
    signals: tuple[str, ...]


_NOTE: Final = re.compile(r"\[[^\[\]\n]*\]")
"""A bracketed note ("[shared image: …]") is the client's word, not the speaker's."""

_CJK: Final = re.compile("[\u4e00-\u9fff]")
_LATIN: Final = re.compile("[A-Za-z][^\u4e00-\u9fff]*")
_IN_REPLY: Final = {
    signal.name: f"reply: {signal.name}" for signal in reading_en.LEXICON.signals + reading_zh.LEXICON.signals
}


def _read(text: str, *, reply: bool) -> Reading:
    """Read a message in its language, or in both: "我住在 Berlin" is Chinese with English in it."""
    if not text:
        return 0.0, 0, []
    text = text[:READ_CHARS]
    if "[" in text:
        text = _NOTE.sub(" ", text)
    if text.isascii() or not _CJK.search(text):
        return read_english(text, reply=reply)
    chinese = read_chinese(text, reply=reply)
    latin = _LATIN.findall(text)
    if not latin:
        return chinese
    english = read_english(" ".join(latin), reply=reply)
    return chinese[0] + english[0], chinese[1] + english[1], chinese[2] + english[2]


def _bounded(points: float) -> float:
    """Points as a score: from ½ to 9½ they are the score; beyond, they bring it ever closer to 0 or 10."""
    if points < 0.5:
        return 0.25 / (1 - points)
    return points if points < 9.5 else 10 - 0.25 / (points - 9)


def estimate(user: str, assistant: str) -> Estimate:
    """Estimate how much an exchange is worth remembering for the long term.

    >>> estimate("My name is Anna and I live in Berlin.", "Nice to meet you!").rating
    10
    >>> estimate("你好", "你好，有什么可以帮你？").rating
    0

    The reply counts only where it speaks of its speaker. What an assistant explains is no memory of the user,
    however many names and dates it holds; but where people talk to each other, both tell.
    """
    points, words, signals = _read(user, reply=False)
    reply_points, reply_words, reply_signals = _read(assistant, reply=True)
    points += REPLY_SHARE * reply_points
    length: float = words
    if reply_signals:
        length += REPLY_SHARE * reply_words
    if length > SHORT_WORDS:
        points += LENGTH_POINTS * math.log2((length if length < LONG_WORDS else LONG_WORDS) / SHORT_WORDS)
    if points > 0 and length < SPARSE_WORDS:
        points *= 2 - length / SPARSE_WORDS
    score = _bounded(points - FREE_POINTS)
    return Estimate(round(score), score, (*signals, *map(_IN_REPLY.__getitem__, reply_signals)))
