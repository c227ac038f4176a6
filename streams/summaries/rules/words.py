"""Texts as vectors of their words: what topics are told apart by, without a model."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np

from streams.summaries.rules.clustering import Vectors
from streams.summaries.rules.sentences import content

MOST_COLUMNS: Final = 4_096
"""Of more different words than that, several share a column."""


def word_vectors(texts: Sequence[str], titles: Sequence[str] = ()) -> tuple[Vectors, Vectors]:
    """Unit vectors, float32[n, d], of texts, and of titles in the texts' words; without any, a row of zeros.

    A word that carries meaning weighs the more, the fewer texts it stands in (TF-IDF, with one for any number of
    times in a text); Chinese counts by pairs of characters, as in a search. A word that only a title has makes it
    longer.
    """
    said = [content(text) for text in texts]
    frequency = Counter(word for words in said for word in sorted(words))  # a set's order is a process's own
    columns = {word: place % MOST_COLUMNS for place, word in enumerate(frequency)}
    worths = {word: math.log1p(len(texts) / count) for word, count in frequency.items()}
    unknown = math.log1p(len(texts)) ** 2
    width = min(len(columns), MOST_COLUMNS)

    def vectors(rows: Sequence[frozenset[str]]) -> Vectors:
        made = np.zeros((len(rows), width), np.float32)
        for row, words in enumerate(rows):
            known = sorted(word for word in words if word in worths)
            squares = sum([worths[word] ** 2 for word in known]) + unknown * (len(words) - len(known))
            for word in known:
                made[row, columns[word]] += worths[word] / math.sqrt(squares)
        return made

    return vectors(said), vectors([content(title) for title in titles])
