"""Names for topics: short phrases of a clause that name something."""

from __future__ import annotations

from collections.abc import Iterator

from streams.summaries.rules import naming_en, naming_zh
from streams.summaries.rules.word_classes import Phrase


def names(clause: str, *, chinese: bool, opening: bool) -> Iterator[Phrase]:
    """Yield the names in a clause; `opening`: it begins its sentence, so its first word is capitalised anyway."""
    return naming_zh.phrases(clause) if chinese else naming_en.phrases(clause, opening=opening)
