"""Finds names for topics: short phrases of a clause that name something."""

from __future__ import annotations

from collections.abc import Iterator

from streams.summaries.rules import naming_en, naming_zh
from streams.summaries.rules.word_classes import Phrase


def names(clause: str, *, chinese: bool, opening: bool) -> Iterator[Phrase]:
    """Yield the names in a clause.

    `opening` is true if the clause begins its sentence. Then the capital letter of its first word does not mean that
    the word is a name.
    """
    return naming_zh.phrases(clause) if chinese else naming_en.phrases(clause, opening=opening)
