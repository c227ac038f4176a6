"""Reads a message with the word lists of its language, for the local estimator.

It looks for the first person, for words about a person's life, for numbers, and for small talk.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from streams.language.evidence import SHAPE, SIDES, Weights
from streams.language.signals import Reading
from streams.language.word_lists import Found, Lists, folded

SIGNALS: Final = ("first person", "life", "number", "news")
"""The names of the signals that word lists can find in a message."""

OWN: Final = 0.9
"""Points for the first person in a message with another signal. Without one ("I see"), it gets `OWN_ALONE` points."""
OWN_ALONE: Final = 0.4

NEWS: Final = 0.7
"""Points for a long word that no list has, in a message with the first person, such as "I am left-handed"."""

LIFE: Final = 1.6
"""Points for each word about a person's life. At most `MOST_LIFE` such words count.

In a user's message they also count without the first person, because many languages leave out "I".
"""
MOST_LIFE: Final = 3

NUMBER: Final = 1.0

COURTESY: Final = -0.8
YOU: Final = -0.4
MOST_SMALL_TALK: Final = 3
"""Maximum number of courtesies that count in a message, and the same limit for the word "you"."""

SHORT_QUESTION: Final = 7
"""Maximum number of words of a question without a question mark.

A longer sentence with a question word, such as "when I was small, we lived by the sea", is no question.
"""

SHORT: Final = 5
"""Maximum number of words that count in a message that says nothing about a person's life."""

_SENTENCE: Final = re.compile(r"[^.!?。！？؟…\n]+[.!?。！？؟…\n]*")
_ASKED: Final = re.compile("[?？؟]")
_CLAUSE_END: Final = re.compile(r"[,;:，、；：،؛—–]")
_NUMBER: Final = re.compile(r"\d")


def _nothing_learned() -> Weights:
    shape = dict.fromkeys(SHAPE, 0.0)
    return Weights({"bias": 0.0, "signals": 1.0, "scale": 0.0, **dict.fromkeys(SIDES, shape)}, b"")


#: The weights of all languages with word lists. They have no learned coefficients, so only the signals' points count.
WEIGHTS: Final = _nothing_learned()


def read(lists: Lists, text: str, *, reply: bool) -> Reading:
    """Read a message. Questions are ignored, because a question says nothing about its speaker.

    A reply has signals only if it has the first person, because an assistant's explanation says nothing about the
    user.
    """
    courtesies = you = words = 0
    own = news = number = False
    life: set[str] = set()
    for sentence in _SENTENCE.findall(folded(text)):
        found = lists.find(sentence)
        courtesies += found.courtesies
        you += found.you
        for told, said in _told(lists, sentence, found):
            words += said.words
            own |= said.own
            news |= said.news
            life |= said.life
            number |= _NUMBER.search(told) is not None
    small_talk = COURTESY * min(MOST_SMALL_TALK, courtesies) + YOU * min(MOST_SMALL_TALK, you)
    news = news and own and not life
    if not (own or (life and not reply)):
        return small_talk, min(words, SHORT), [], 0.0, WEIGHTS
    if not (life or number or news):
        return small_talk + OWN_ALONE, min(words, SHORT), [SIGNALS[0]], 0.0, WEIGHTS
    points = OWN * own + NUMBER * number + LIFE * min(MOST_LIFE, len(life)) + NEWS * news
    signals = [name for name, there in zip(SIGNALS, (own, life, number, news), strict=True) if there]
    return small_talk + points, words, signals, 0.0, WEIGHTS


def _told(lists: Lists, sentence: str, found: Found) -> Iterator[tuple[str, Found]]:
    """Yield the parts of a sentence that are statements, each with the result of its search.

    If the sentence is a question, only its clauses before the last clause are yielded; else the whole sentence.
    """
    if _ASKED.search(sentence) or found.asks or (found.asks_if_short and found.words <= SHORT_QUESTION):
        *before, _ = _CLAUSE_END.split(sentence)
        yield from ((clause, lists.find(clause)) for clause in before)
    else:
        yield sentence, found
