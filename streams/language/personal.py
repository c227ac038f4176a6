"""Finds sentences in which users tell who they are: who and where, people, preferences, and what is to come.

English and Chinese have rules. They are narrow, because a wrong line of a profile is worse than a missing one. What
changes over time has a key: of two sentences with one key, the newer one holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from streams.language import personal_en, personal_zh
from streams.language.borrowed import is_borrowed
from streams.language.personal_fact import Fact, Part
from streams.language.scripts import is_chinese
from streams.language.secrets_told import is_secret

#: The maximum number of characters of a text and of a sentence that are read.
READ_CHARS: Final = 2_000
SENTENCE_CHARS: Final = 160
_SENTENCE: Final = re.compile(r"[^.!?。！？؟\n]*(?:\.(?=[^\s.])[^.!?。！？؟\n]*)*[.!?。！？؟…]*[”\"』」）)]?")
_MARKS: Final = ".!?。！？؟…\n"
#: Abbreviations whose full stop ends no sentence.
_SHORT: Final = re.compile(r"\b(?:Mrs?|Ms|Dr|Prof|St|vs|e\.g|i\.e|approx|Inc|Ltd|Jr|Sr|No)\.$")
#: What a client wrote in brackets, such as "[shared image: …]".
_NOTE: Final = re.compile(r"\[[^\[\]\n]*\]")

#: What is shown first of what is about the user.
_ABOUT_RANK: Final = {
    **dict.fromkeys(("name", "名字"), 0),
    **dict.fromkeys(("home", "occupation", "employer", "health", "住处", "职业", "单位", "健康"), 1),
}


def sentences(text: str, most_chars: int = READ_CHARS) -> Iterator[str]:
    """Yield the sentences of the first characters of a text, with their marks, without one that is cut.

    Longer ones than `SENTENCE_CHARS` are passed over.

    >>> list(sentences("Hi! I live in St. Ives. Do you?"))
    ['Hi!', 'I live in St. Ives.', 'Do you?']
    """
    begun, read = "", text[:most_chars]
    if len(text) > most_chars:
        read = read[: max(read.rfind(mark) for mark in _MARKS) + 1]
    for line in _NOTE.sub("", read).splitlines():
        for piece in _SENTENCE.findall(line):
            begun += piece
            if _SHORT.search(begun[-8:]):
                continue
            if len(begun) <= SENTENCE_CHARS and (bare := " ".join(begun.split())):
                yield bare
            begun = ""
        begun = ""


def facts(sentence: str) -> list[Fact]:
    """Return what a sentence tells of its speaker. A question, a secret, and words of others tell nothing.

    >>> [(one.part, one.key) for one in facts("My sister Anna lives with us.")]
    [(<Part.PEOPLE: 'people'>, ('anna',))]
    """
    if sentence.rstrip('”"』」）)').endswith(("?", "？", "؟")):
        return []
    if sentence.isascii() or not personal_zh.may_tell(sentence):
        found = list(personal_en.facts(sentence)) if personal_en.may_tell(sentence) else []
    else:
        found = list(personal_zh.facts(sentence)) if is_chinese(sentence) else []
    if not found or is_secret(sentence) or is_borrowed(sentence):
        return []
    return [one._replace(rank=_ABOUT_RANK.get(one.key[0], 2)) if one.part is Part.ABOUT else one for one in found]
