"""What a topic can be called: short phrases of a clause that name something."""

from __future__ import annotations

from collections.abc import Iterator

from streams.summaries.rules import naming_en, naming_zh
from streams.summaries.rules.word_classes import Phrase


def names(clause: str, *, chinese: bool, opening: bool) -> Iterator[Phrase]:
    """The names in a clause; `opening` where it begins its sentence, so that it begins with a capital in any case."""
    return naming_zh.phrases(clause) if chinese else naming_en.phrases(clause, opening=opening)
