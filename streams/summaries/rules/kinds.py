"""Says of each clause of a day what kind of line it makes: a preference, a decision, a task, a problem, … or none.

A linear model reads the clause, its neighbours, and the messages before and after it: their words and characters, and
how the Universal Sentence Encoder embeds them, if the extra `embedded` is installed. Without it, other weights are
used, which find fewer lines. `benchmarks/summary_training.py` fits both to our own invented dialogues, and writes
`kinds.npz`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from streams.language.estimator import told
from streams.summaries.rules.sentences import Sentence

NONE, PREFERENCE, DECISION, REASON, TASK, PROBLEM, SOLUTION, INSIGHT = range(8)
KINDS: Final = ("none", "preference", "decision", "reason", "task", "problem", "solution", "insight")

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

Floats = NDArray[np.float32]
Embed = Callable[[Sequence[str]], Floats]


class Features(NamedTuple):
    """The features of a day's clauses: for each one, the indexes of its n-grams, of its shape, and its embedding.

    `embedded` is float32[clauses, 2 · 4 · 512], or has no columns without an encoder.
    """

    ngrams: list[NDArray[np.int64]]
    shapes: list[NDArray[np.int64]]
    embedded: Floats


class Weights:
    """The coefficients of the linear model: of n-grams, of shapes, of embeddings, and the bias, for each kind."""

    def __init__(self, ngrams: Floats, shapes: Floats, embedded: Floats, bias: Floats) -> None:
        self._ngrams, self._shapes, self._embedded, self._bias = ngrams, shapes, embedded, bias

    def probabilities(self, features: Features) -> Floats:
        """Return the probability of each kind for each clause, float32[clauses, kinds]."""
        odds = np.tile(self._bias, (len(features.ngrams), 1))
        for row, (ngrams, shapes) in enumerate(zip(features.ngrams, features.shapes, strict=True)):
            odds[row] += self._ngrams[ngrams].sum(axis=0) * ngram_scale(len(ngrams))
            odds[row] += self._shapes[shapes].sum(axis=0) * SHAPE_SCALE
        odds += features.embedded @ self._embedded
        return softmax(odds)


def softmax(odds: Any) -> Floats:
    """Return the probabilities of each row's kinds, for their log-odds up to a constant."""
    powers = np.exp(odds - odds.max(axis=1, keepdims=True))
    chances: Floats = powers / powers.sum(axis=1, keepdims=True)
    return chances


def ngram_scale(count: int) -> float:
    """Return the factor of each n-gram of a clause that has `count`, so that long clauses do not weigh more."""
    return float(NGRAM_SCALE / max(1, count) ** 0.5)


def probabilities(sentences: Sequence[Sentence]) -> list[Floats]:
    """Return the probabilities of the kinds for the clauses of each sentence, a float32[clauses, kinds] for each."""
    if not sentences:
        return []
    embed = encoder()
    found = loaded("embedded" if embed else "alone").probabilities(features(sentences, embed))
    return np.split(found, np.cumsum([len(sentence.clauses) for sentence in sentences])[:-1])


def features(sentences: Sequence[Sentence], embed: Embed | None) -> Features:
    """Return the features of all clauses of a day, in their order."""
    ngrams: list[NDArray[np.int64]] = []
    shapes: list[NDArray[np.int64]] = []
    texts: list[tuple[str, ...]] = []
    by_user: list[bool] = []
    words = [[words_of(clause) for clause in sentence.clauses] for sentence in sentences]
    before, after = _neighbours(sentences)
    for place, sentence in enumerate(sentences):
        for clause, text in enumerate(sentence.clauses):
            ngrams.append(_indexes(_ngrams(sentences, words, place, clause, before[place], after[place]), BUCKETS))
            shapes.append(_indexes(_shape(sentence, words[place][clause], clause, before[place]), SHAPES))
            near = (sentences[at].text if at is not None else "" for at in (before[place], after[place]))
            texts.append((text, sentence.text, *near))
            by_user.append(sentence.by_user)
    return Features(ngrams, shapes, _embedded(texts, by_user, embed))


def _neighbours(sentences: Sequence[Sentence]) -> tuple[list[int | None], list[int | None]]:
    """Return, for each sentence, the index of the last sentence before its message, and of the first one after it.

    A neighbour of another session is none.
    """
    changes = [place for place, (one, next_) in enumerate(pairwise(sentences), 1) if one.message is not next_.message]
    starts = [0, *changes] if sentences else []
    before: list[int | None] = []
    after: list[int | None] = []
    for number, start in enumerate(starts):
        end = starts[number + 1] if number + 1 < len(starts) else len(sentences)
        session = sentences[start].turn.session_id
        earlier = start - 1 if start and sentences[start - 1].turn.session_id == session else None
        later = end if end < len(sentences) and sentences[end].turn.session_id == session else None
        before += [earlier] * (end - start)
        after += [later] * (end - start)
    return before, after


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


def _shape(sentence: Sentence, words: Sequence[str], clause: int, before: int | None) -> Iterator[str]:
    role = "u" if sentence.by_user else "a"
    yield role
    yield f"{role} long {min(6, len(words) // 3)}"
    yield f"{role} asked {clause >= sentence.told}"
    yield f"{role} place {min(clause, 2)} {min(2, len(sentence.clauses) - clause)}"
    yield f"{role} answers {before is not None and sentence.asked}"
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


def _embedded(texts: Sequence[tuple[str, ...]], by_user: Sequence[bool], embed: Embed | None) -> Floats:
    """Return the embeddings of each clause, its sentence, and its neighbours, on the side of its speaker."""
    if embed is None or not texts:
        return np.empty((len(texts), 0), np.float32)
    unique = list(dict.fromkeys(text for some in texts for text in some if text))
    place_of = {text: place for place, text in enumerate(unique)}
    vectors = embed(unique)
    vectors = np.vstack([vectors, np.zeros_like(vectors[:1])])
    rows = np.array([[place_of.get(text, len(unique)) for text in some] for some in texts])
    joined = vectors[rows].reshape(len(texts), -1) * EMBEDDED_SCALE
    user = np.array(by_user)[:, None]
    return np.hstack([joined * user, joined * ~user]).astype(np.float32)


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


@lru_cache(maxsize=1)
def encoder() -> Embed | None:
    """Return the function that embeds texts, or None if the extra `embedded` is not installed."""
    from streams.models.embedding.use_model import UseModel

    try:
        return UseModel().encode
    except ImportError:
        return None
