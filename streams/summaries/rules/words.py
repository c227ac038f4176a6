"""Makes vectors of texts from the words in the texts, so that topics can be separated without an embedding model."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np

from streams.summaries.rules.clustering import Vectors
from streams.summaries.rules.sentences import content

MOST_COLUMNS: Final = 4_096
"""Maximum number of columns of a vector. If there are more different words, several words share a column."""


def word_vectors(texts: Sequence[str], titles: Sequence[str] = ()) -> tuple[Vectors, Vectors]:
    """Return the unit vectors of texts and of titles, float32[n, d]. The columns are the words of the texts.

    The fewer texts contain a word, the higher is its weight (TF-IDF; several occurrences in a text count as one).
    Words without meaning do not count. Chinese words are pairs of characters, as in a search. A word that occurs in a
    title but in no text makes the cosines of this title lower. The vector of a text without known words consists of
    zeros.
    """
    said = [content(text) for text in texts]
    # Sort the words, because the order of a set differs between processes.
    frequency = Counter(word for words in said for word in sorted(words))
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
