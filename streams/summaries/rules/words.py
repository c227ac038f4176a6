"""Texts as vectors of their words, which separate topics without a model."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np

from streams.summaries.rules.clustering import Vectors
from streams.summaries.rules.sentences import content

MOST_COLUMNS: Final = 4_096
"""If there are more different words, several share a column."""


def word_vectors(texts: Sequence[str], titles: Sequence[str] = ()) -> tuple[Vectors, Vectors]:
    """Unit vectors, float32[n, d], of texts, and of titles in the texts' words; a row of zeros for no words.

    The fewer texts contain a meaningful word, the more it weighs (TF-IDF, where any number of occurrences in a text
    counts as one). Chinese counts by pairs of characters, as in a search. Words that only a title has count in its
    length, so its cosines are lower.
    """
    said = [content(text) for text in texts]
    frequency = Counter(word for words in said for word in sorted(words))  # a set's order differs between processes
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
