"""Says of each clause of a day what kind of line it makes: a preference, a decision, a task, a problem, … or none.

A linear model reads the clause, its neighbours, and the messages before and after it: their words and characters, and
how the Universal Sentence Encoder embeds them, if the extra `embedded` is installed. Without it, other weights are
used, which find fewer lines. `benchmarks/summary_training.py` fits both to our own invented dialogues, and writes
`kinds.npz`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from enum import IntEnum
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from streams.language.estimator import told
from streams.summaries.rules.embedding import Embed, Floats, encoder
from streams.summaries.rules.sentences import Sentence, neighbours


class Kind(IntEnum):
    """What a clause says; the model's columns are in this order."""

    NONE = 0
    PREFERENCE = 1
    DECISION = 2
    REASON = 3
    TASK = 4
    PROBLEM = 5
    SOLUTION = 6
    INSIGHT = 7


FILE: Final = Path(__file__).with_name("kinds.npz")

BUCKETS: Final = 1 << 16
"""The number of coefficients that all n-grams share; the CRC-32 of an n-gram, modulo this number, is its index."""

SHAPES: Final = 1 << 10
"""The number of coefficients that the features of a clause's shape share."""

WORDS, CHARACTERS = 3, 4
"""The longest n-grams: of words, and of Chinese and Japanese characters."""

NEAR: Final = 8
"""Maximum number of words that are read of a neighbouring clause, on the side of the clause."""

PIECE: Final = 4
"""A longer word is also read by its first four and last three letters, so that its forms have something in common."""

SIDES, TEXTS = 2, 4
"""Embeddings have coefficients for two speakers, and for four texts: see `Features`."""

MOST_WORDS: Final = 60
"""Maximum number of words that are read of a clause."""

NGRAM_SCALE, SHAPE_SCALE, EMBEDDED_SCALE = 2.0, 0.7, 2.0
"""Factors of the features. They say which ones the fit may use more freely."""

_CUES: Final = ("must", "will", "offers", "because", "habits")
"""Cues that are features of a clause, beside the signals that the local estimator finds in the user's."""

_WORD: Final = re.compile(
    r"[\u3005\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]|[\uac00-\ud7a3]+|\d+|[^\W\d_]+(?:'[^\W\d_]+)?|[^\w\s]"
)
_UNSPACED: Final = re.compile("[\u3005\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]")
_HANGUL: Final = re.compile("[\uac00-\ud7a3]")
_CAPITAL: Final = re.compile("(?<!^)[A-Z]")


class Features(NamedTuple):
    """The features of a day's clauses: of each one, the indexes of its n-grams and of its shape, and texts to embed.

    `texts` are all texts once. `rows` has, for each clause, the indexes of its own text, of its sentence, and of the
    sentences before and after its message, int64[clauses, 4]; -1 if there is none. `by_user` is bool[clauses].
    """

    ngrams: list[NDArray[np.int64]]
    shapes: list[NDArray[np.int64]]
    texts: list[str]
    rows: NDArray[np.int64]
    by_user: NDArray[np.bool_]


class Weights:
    """The coefficients of the linear model: of n-grams, of shapes, of embeddings, and the bias, for each kind.

    `embedded` is float32[2 · 4 · 512, kinds]: for the user's clauses and for the assistant's, for each of the four
    texts. It has no rows if the model reads no embeddings.
    """

    def __init__(self, ngrams: Floats, shapes: Floats, embedded: Floats, bias: Floats) -> None:
        self._ngrams, self._shapes, self._bias = ngrams, shapes, bias
        size = len(embedded) // (SIDES * TEXTS)
        parts = embedded.reshape(SIDES, TEXTS, size, len(Kind)) * np.float32(EMBEDDED_SCALE)
        self._embedded: Final = parts.transpose(2, 0, 1, 3).reshape(size, SIDES * TEXTS * len(Kind))

    def probabilities(self, features: Features, embed: Embed | None) -> Floats:
        """Return the probability of each kind for each clause, float32[clauses, kinds]."""
        odds = np.tile(self._bias, (len(features.ngrams), 1))
        for row, (ngrams, shapes) in enumerate(zip(features.ngrams, features.shapes, strict=True)):
            odds[row] += self._ngrams[ngrams].sum(axis=0) * ngram_scale(len(ngrams))
            odds[row] += self._shapes[shapes].sum(axis=0) * SHAPE_SCALE
        if embed:
            side = (~features.by_user).astype(np.int64)
            said = self._of_texts(features.texts, embed)
            for place in range(TEXTS):
                odds += said[features.rows[:, place], side, place]
        return softmax(odds)

    def _of_texts(self, texts: Sequence[str], embed: Embed) -> Floats:
        """Return what each text says for each kind, by side and place, float32[texts + 1, 2, 4, kinds].

        The last row, which the index -1 means, is of no text.
        """
        found = np.zeros((len(texts) + 1, SIDES * TEXTS * len(Kind)), np.float32)
        found[:-1] = embed(texts) @ self._embedded
        return found.reshape(-1, SIDES, TEXTS, len(Kind))


def softmax(odds: Any) -> Floats:
    """Return the probabilities of each row's kinds, for their log-odds up to a constant."""
    powers = np.exp(odds - odds.max(axis=1, keepdims=True))
    chances: Floats = powers / powers.sum(axis=1, keepdims=True)
    return chances


def ngram_scale(count: int) -> float:
    """Return the factor of each n-gram of a clause that has `count`, so that long clauses do not weigh more."""
    return float(NGRAM_SCALE / max(1, count) ** 0.5)


def probabilities(sentences: Sequence[Sentence], embed: Embed | None) -> list[Floats]:
    """Return the probabilities of the kinds for the clauses of each sentence, a float32[clauses, kinds] for each."""
    if not sentences:
        return []
    found = loaded("embedded" if embed else "alone").probabilities(features(sentences), embed)
    return np.split(found, np.cumsum([len(sentence.clauses) for sentence in sentences])[:-1])


def features(sentences: Sequence[Sentence]) -> Features:
    """Return the features of all clauses of a day, in their order."""
    ngrams: list[NDArray[np.int64]] = []
    shapes: list[NDArray[np.int64]] = []
    place_of: dict[str, int] = {}
    rows: list[list[int]] = []
    words = [[words_of(clause) for clause in sentence.clauses] for sentence in sentences]
    before, after = neighbours(sentences)
    for place, sentence in enumerate(sentences):
        near = [None if at is None else sentences[at] for at in (before[place], after[place])]
        said = [sentence.text, *(None if each is None else each.text for each in near)]
        asked = near[0] is not None and near[0].asked
        for clause, text in enumerate(sentence.clauses):
            ngrams.append(_indexes(_ngrams(sentences, words, place, clause, before[place], after[place]), BUCKETS))
            shapes.append(_indexes(_shape(sentence, words[place][clause], clause, asked=asked), SHAPES))
            texts = (text, *said)
            rows.append([-1 if one is None else place_of.setdefault(one, len(place_of)) for one in texts])
    by_user = [sentence.by_user for sentence in sentences for _ in sentence.clauses]
    return Features(
        ngrams, shapes, list(place_of), np.array(rows, np.int64).reshape(-1, TEXTS), np.array(by_user, np.bool_)
    )


def words_of(text: str) -> list[str]:
    """Return the words and marks of a text in lower case. A Chinese or Japanese character is a word; numbers are 0.

    >>> words_of("It’s 7:30, 出发")
    ["it's", '0', ':', '0', ',', '出', '发']
    """
    folded = unicodedata.normalize("NFKC", text).casefold().replace("’", "'")
    return ["0" if word.isdigit() else word for word in _WORD.findall(folded)]


def _ngrams(
    sentences: Sequence[Sentence],
    words: Sequence[Sequence[list[str]]],
    place: int,
    clause: int,
    before: int | None,
    after: int | None,
) -> Iterator[str]:
    sentence, said = sentences[place], words[place]
    here = said[clause][:MOST_WORDS]
    role = "u" if sentence.by_user else "a"
    for gram in _grams(here, WORDS, CHARACTERS):
        yield f"{role} {gram}"
    for count in range(1, WORDS + 1):
        yield f"{role}^{' '.join(here[:count])}"
        yield f"{role}${' '.join(here[-count:])}"
    for word in here:
        if _HANGUL.match(word):
            for count in range(1, WORDS + 1):
                yield f"{role}*{word[:count]}"
                yield f"{role}_{word[-count:]}"
        elif len(word) > PIECE:
            yield f"{role}*{word[:PIECE]}"
            yield f"{role}_{word[1 - PIECE :]}"
    for mark, near in (
        ("<", said[clause - 1][-NEAR:] if clause else []),
        (">", said[clause + 1][:NEAR] if clause + 1 < len(said) else []),
        ("?", words[before][-1][-NEAR:] if before is not None else []),
        ("!", words[after][0][:NEAR] if after is not None else []),
        ("~", words[place - 1][-1][-NEAR:] if place and sentences[place - 1].message is sentence.message else []),
    ):
        for gram in _grams(near, 2, 2):
            yield f"{role}{mark}{gram}"


def _grams(words: Sequence[str], most: int, most_characters: int) -> Iterator[str]:
    for start, word in enumerate(words):
        unspaced = _UNSPACED.match(word)
        for count in range(1, min(most_characters if unspaced else most, len(words) - start) + 1):
            yield ("" if unspaced else " ").join(words[start : start + count])


def _shape(sentence: Sentence, words: Sequence[str], clause: int, *, asked: bool) -> Iterator[str]:
    role = "u" if sentence.by_user else "a"
    yield role
    yield f"{role} long {min(6, len(words) // 3)}"
    yield f"{role} asked {clause >= sentence.told}"
    yield f"{role} place {min(clause, 2)} {min(2, len(sentence.clauses) - clause)}"
    yield f"{role} answers {asked}"
    if "0" in words:
        yield f"{role} number"
    if _CAPITAL.search(sentence.clauses[clause].strip()):
        yield f"{role} name"
    if sentence.code:
        yield f"{role} code"
        return
    text = sentence.opened[clause]
    for cue in _CUES:
        if getattr(sentence.cues, cue).search(text):
            yield f"{role} {cue}"
    if sentence.by_user:
        yield from (f"says {signal}" for signal in told(text).signals)


def _indexes(named: Iterator[str], size: int) -> NDArray[np.int64]:
    return np.fromiter({crc32(name.encode("utf-8", "surrogatepass")) % size for name in named}, np.int64)


def ready() -> None:
    """Read the encoder and the weights, which takes about a second. Later calls do nothing."""
    loaded("embedded" if encoder() else "alone")


@lru_cache(maxsize=2)
def loaded(name: str) -> Weights:
    """Read the weights `embedded` or `alone` from `kinds.npz`."""
    with np.load(FILE) as file:
        return Weights(*(_scaled(file, f"{name}_{part}") for part in ("ngrams", "shapes", "embedded", "bias")))


def _scaled(file: Any, name: str) -> Floats:
    values: NDArray[Any] = file[name]
    return values.astype(np.float32) * np.float32(file.get(f"{name}_scale", 1.0))
