"""The local estimator: rates an exchange from its text alone, 0-10, higher if it is more worth remembering.

It rates if no model is configured, so it has to be free, fast and repeatable. It does not understand the text. It
counts signals of statements about a person's life (first person, relations, names, times, plans, tastes) and work
(deadlines, versions, requirements, reports), and subtracts signals of small talk (courtesies, talk about "you").
Questions, requests, code, and an assistant's explanations are not read. `signals.py` defines the signals.
`reading_en.py` reads English, `reading_zh.py` Chinese, and `list_reading.py` the languages of `languages/`.
"""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import Final, NamedTuple

from streams.language import reading_en, reading_zh
from streams.language.evidence import WEIGHTS
from streams.language.list_reading import SIGNALS
from streams.language.list_reading import read as read_by_lists
from streams.language.reading_en import REMOVED_CODE, read_english
from streams.language.reading_zh import parsed as parsed_chinese
from streams.language.reading_zh import read_chinese
from streams.language.signals import Reading
from streams.language.telling import NOTE, language_of
from streams.language.word_lists import CODES, lists_of

READ_CHARS: Final = 2_000
"""Maximum number of characters that the estimator reads of a message.

A longer message is most likely a pasted document, and its beginning shows whether it is about the user.
"""

EXPLANATION_CHARS: Final = 600
"""A longer reply is an explanation, as is a reply with code, headings or a list.

An explanation says nothing about the user. An assistant answers "How do I sort a list?" and "We use Python 3.11, how
do I sort a list?" alike. People who talk to each other seldom write so much at once.
"""

FENCE: Final = "```"
"""The beginning and the end of code in a message. Code is not rated, because it is no statement."""

REPLY_SHARE: Final = 0.7
"""The weight of a signal in the assistant's reply. A signal in the user's words has the weight 1."""

FREE_POINTS: Final = 0.5
"""Points that even small talk gets. They are subtracted from the points of every exchange."""

LENGTH_POINTS: Final = 1.2
"""Points for each doubling of the number of words from `SHORT_WORDS` to `LONG_WORDS`.

Longer messages get more points, because they say more about their author.
"""

SHORT_WORDS: Final = 5
LONG_WORDS: Final = 36
"""`LENGTH_POINTS` depend on the number of words only between `SHORT_WORDS` and `LONG_WORDS`."""

SPARSE_WORDS: Final = 11
"""If an exchange has fewer words, its positive points are multiplied by up to 2.

This is because signals are a larger share of a short text.
"""


LEAST_POINTS, MOST_POINTS = -2.0, 14.0
"""The minimum and maximum of the signals' points that enter the estimate."""


class Told(NamedTuple):
    """The signals of an exchange, their points, and the score (0-10) that follows from the signals alone.

    `signals` are the names of the signals in the user's words, and then of the signals in the reply, which have the
    prefix `reply: `.
    """

    score: float
    points: float
    signals: tuple[str, ...]


class Estimate(NamedTuple):
    """The estimated worth of an exchange, and its reasons.

    `rating` is on the scale of a model's rating, 0-10. `score` is the rating before rounding, for ranking. `signals`
    has the same names as `Told.signals`.
    """

    rating: int
    score: float
    signals: tuple[str, ...]


_MARKED_UP: Final = re.compile(r"```|\*\*|^(?:#{1,6}|[-*]|1\.)\s", re.MULTILINE)
_CJK: Final = re.compile("[\u4e00-\u9fff]")
_LATIN: Final = re.compile("[A-Za-z][^\u4e00-\u9fff]*")
_LATIN_LETTER: Final = re.compile("[A-Za-z]")
_IN_REPLY: Final = {
    name: f"reply: {name}"
    for name in (*(signal.name for signal in reading_en.LEXICON.signals + reading_zh.LEXICON.signals), *SIGNALS)
}


_ENGLISH: Final = WEIGHTS["en"]


def readable(text: str, *, reply: bool) -> str:
    """Return the part of a message that is rated: its first `READ_CHARS` characters, without notes and code.

    A reply that is an explanation has no such part. `REMOVED_CODE` stands for code. What follows a fence that is
    never closed is text, not code.

    >>> readable("It fails [screenshot] in ```raise``` Why?", reply=False).split()
    ['It', 'fails', 'in', '`', 'Why?']
    """
    if reply and (len(text) > EXPLANATION_CHARS or _MARKED_UP.search(text)):
        return ""
    rest = text[READ_CHARS - len(FENCE) + 1 :]
    text = text[:READ_CHARS]
    if FENCE in text:
        pieces = text.split(FENCE)
        unclosed = len(pieces) % 2 == 0 and FENCE not in rest
        text = f"\n{REMOVED_CODE} ".join(pieces[::2] + pieces[-1:] if unclosed else pieces[::2])
    return NOTE.sub(" ", text) if "[" in text else text


def spoken_chinese(text: str) -> bool:
    """True if a message is Chinese, or contains Chinese."""
    return not text.isascii() and _CJK.search(text, 0, READ_CHARS) is not None


def _read(text: str, language: str | None, *, reply: bool) -> Reading:
    """Read a message in the exchange's language, and return its signals and points.

    A Chinese message with Latin letters in it, such as "我住在 Berlin", is read as Chinese and as English.
    """
    text = readable(text, reply=reply)
    if not text:
        return 0.0, 0, [], 0.0, _ENGLISH
    if language in CODES:
        return read_by_lists(lists_of(language), text, reply=reply)
    if text.isascii() or not _CJK.search(text):
        return read_english(text, reply=reply)
    tokens, letters = parsed_chinese(text)
    chinese = read_chinese(tokens, letters, reply=reply)
    if not _LATIN_LETTER.search(text):
        return chinese
    struck = "".join(tokens)  # the text without orders to the rater
    if not _CJK.search(struck):
        return read_english(struck, reply=reply)
    latin = _LATIN.findall(struck)
    if not latin:
        return chinese
    english = read_english(" ".join(latin), reply=reply)
    evidence = chinese[3] + english[3] if english[2] else chinese[3]
    return chinese[0] + english[0], chinese[1] + english[1], chinese[2] + english[2], evidence, chinese[4]


def unread(user: str) -> bool:
    """True if the estimator cannot read the language of a user's words. If so, its rating has no meaning.

    >>> unread("Jag är allergisk mot nötter"), unread("I am allergic to nuts")
    (True, False)
    """
    return language_of(user) is None


def bounded(points: float) -> float:
    """Convert any number of points into a score from 0 to 10.

    From ½ to 9½, the score equals the points. For fewer or more points, the score approaches 0 or 10.
    """
    if points < 0.5:
        return 0.25 / (1 - points)
    return points if points < 9.5 else 10 - 0.25 / (points - 9)


def told(user: str, assistant: str = "") -> Told:
    """Return the signals of an exchange, or of a sentence, with the score that follows from the signals alone.

    The reply counts only if it is about its speaker, and no explanation. An explanation by an assistant says nothing
    about the user, even if it has many names and dates. But if two people talk to each other, both talk about
    themselves.
    """
    language = language_of(user or assistant)
    said, replied = _read(user, language, reply=False), _read(assistant, language, reply=True)
    points = _points(said, replied)
    return Told(bounded(points), min(MOST_POINTS, max(LEAST_POINTS, points)), _names(said, replied))


def estimate(user: str, assistant: str) -> Estimate:
    """Estimate how much an exchange is worth remembering for the long term.

    >>> estimate("My name is Anna and I live in Berlin.", "Nice to meet you!").rating
    10
    >>> estimate("你好", "你好，有什么可以帮你？").rating
    0

    The score is the `bounded` sum of a bias, the weighted points of the signals, and the evidence of the words. The
    bias and the weight depend on the language of the user's words.
    """
    language = language_of(user or assistant)
    said, replied = _read(user, language, reply=False), _read(assistant, language, reply=True)
    points = _points(said, replied)
    if points > MOST_POINTS:
        points = MOST_POINTS
    elif points < LEAST_POINTS:
        points = LEAST_POINTS
    weights = said[4] if user else replied[4]
    score = bounded(weights.bias + weights.signals * points + said[3] + replied[3])
    return Estimate(round(score), score, _names(said, replied))


@lru_cache(maxsize=64)
def estimated_rating(user: str, assistant: str) -> int:
    """Return the rating of an exchange. The result is cached, because promotion needs it up to three times."""
    return estimate(user, assistant).rating


def _names(said: Reading, replied: Reading) -> tuple[str, ...]:
    return (*said[2], *map(_IN_REPLY.__getitem__, replied[2])) if replied[2] else tuple(said[2])


def _points(said: Reading, replied: Reading) -> float:
    """Return the points of the signals of both messages, adjusted by the length of the messages."""
    points = said[0] + REPLY_SHARE * replied[0]
    length: float = said[1]
    if replied[2]:
        length += REPLY_SHARE * replied[1]
    if length > SHORT_WORDS:
        points += LENGTH_POINTS * math.log2((length if length < LONG_WORDS else LONG_WORDS) / SHORT_WORDS)
    if points > 0 and length < SPARSE_WORDS:
        points *= 2 - length / SPARSE_WORDS
    return points - FREE_POINTS
