"""Reading a message by a language's lists: who it is about, what of a life it tells, and how much is small talk."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from streams.rules.evidence import SHAPE, SIDES, Weights
from streams.rules.languages.lists import Lists, folded
from streams.rules.signals import Reading

OWN: Final = 0.9
"""Points for the first person, beside something of a life; by itself ("I see") it is worth `OWN_ALONE`."""
OWN_ALONE: Final = 0.4

NEWS: Final = 0.7
"""Points for a long word that is not listed, beside the first person: "I am left-handed" says something, whatever."""

LIFE: Final = 1.6
"""Points for a word about a life, up to `MOST_LIFE` of them: by itself enough, as most languages leave out "I"."""
MOST_LIFE: Final = 3

NUMBER: Final = 1.0

COURTESY: Final = -0.8
YOU: Final = -0.4
MOST_SMALL_TALK: Final = 3
"""How many courtesies and how many "you" count."""

SHORT_QUESTION: Final = 7
"""A question without a mark has no more words: "when I was small, we lived by the sea" is none."""

SHORT: Final = 5
"""What tells nothing of a life counts as no longer than this."""

_SENTENCE: Final = re.compile(r"[^.!?。！？؟…\n]+[.!?。！？؟…\n]*")
_ASKED: Final = re.compile("[?？؟]")
_CLAUSE_END: Final = re.compile(r"[,;:，、；：،؛—–]")
_NUMBER: Final = re.compile(r"\d")
_WORD: Final = re.compile(r"[^\W\d_]+")
_LETTER: Final = re.compile(r"\w")


def _nothing_learned() -> Weights:
    shape = dict.fromkeys(SHAPE, 0.0)
    return Weights({"bias": 0.0, "signals": 1.0, "scale": 0.0, **dict.fromkeys(SIDES, shape)}, b"")


#: The points are the score.
WEIGHTS: Final = _nothing_learned()


def read(lists: Lists, text: str, *, reply: bool) -> Reading:
    """What a message tells. A question tells what its speaker does not know.

    A reply counts where its speaker says "I": what an assistant explains is nothing of the user.
    """
    text = folded(text)
    small_talk = COURTESY * min(MOST_SMALL_TALK, len(lists.courtesy.findall(text)))
    small_talk += YOU * min(MOST_SMALL_TALK, len(lists.you.findall(text)))
    told = lists.courtesy.sub(" ", "\n".join(_told(lists, text)))
    if lists.letters_of_a_word is None:
        words = len(told.split())
    else:
        words = len(_LETTER.findall(told)) // lists.letters_of_a_word
    own = lists.own.search(told) is not None
    life = len({found[0] for found in lists.life.finditer(told)})
    number = _NUMBER.search(told) is not None
    if not (own or (life and not reply)):
        return small_talk, min(words, SHORT), [], 0.0, WEIGHTS
    news = own and not life and _has_news(lists, told)
    if not (life or number or news):
        return small_talk + OWN_ALONE, min(words, SHORT), ["first person"], 0.0, WEIGHTS
    points = OWN * own + NUMBER * number + LIFE * min(MOST_LIFE, life) + NEWS * news
    signals = (("first person", own), ("life", life), ("number", number), ("news", news))
    return small_talk + points, words, [name for name, there in signals if there], 0.0, WEIGHTS


def _has_news(lists: Lists, told: str) -> bool:
    """Whether a word is long, not listed, and none that all texts have."""
    words = _WORD.findall(lists.own.sub(" ", told))
    return any(len(word) >= lists.long_word and word not in lists.common for word in words)


def _told(lists: Lists, text: str) -> Iterator[str]:
    """The sentences that ask nothing; of one that ends in a question, what comes before its last clause."""
    for sentence in _SENTENCE.findall(text):
        if _ASKED.search(sentence) or _asks(lists, sentence):
            *before, _ = _CLAUSE_END.split(sentence)
            yield from before
        else:
            yield sentence


def _asks(lists: Lists, sentence: str) -> bool:
    """Whether its words ask, without a mark."""
    if lists.asking.search(sentence) is None:
        return False
    return lists.unsaid or len(sentence.split()) <= SHORT_QUESTION
