"""How well a user's memories answer a query: BM25 and cosine, fused into one relevance.

Everything here is pure and deterministic; embedding and storage stay outside:

    parts = questions(query)
    dense = embed([probe(part, speakers) for part in parts]) @ vectors.T  # [parts, n]
    lexical = np.stack([index.scores(part) for part in parts])            # [parts, n]
    relevance = carry(fuse(dense, lexical).max(axis=0), previous)
    hits = top(relevance, allowed, k=10)

One row is one memory, in the order of adding; rows of ``dense``, ``lexical``, ``previous`` and
``allowed`` are the same.
"""

from __future__ import annotations

import math
import re
from array import array
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from tables.tokens import has_cjk, tokens, weight

Scores = NDArray[np.float32]

_SENTENCE_END = re.compile(r"(?<=[。！？!?；;\n])(?=\s*\w)|(?<=\.)\s+")
_QUESTION = re.compile(r"\w.*[?？]\W*$", re.DOTALL)

MAX_PARTS: Final = 6


@dataclass(slots=True)
class _Postings:
    rows: array[int] = field(default_factory=lambda: array("i"))
    counts: array[float] = field(default_factory=lambda: array("f"))


class LexicalIndex:
    """BM25 over the memories of one user, growing at the end.

    Statistics (rarity, mean length) are taken at query time, so adding in pieces equals building at
    once. A forgotten memory keeps its row until the index is built anew; mask it in :func:`top`.

    ``K1`` and ``B`` were chosen where LoCoMo and MemDaily are both flat. ``PRIOR_MEMORIES`` imaginary
    memories without any of the terms keep the rarities of a user with three memories sane.
    """

    K1: Final = 1.0
    B: Final = 0.5
    PRIOR_MEMORIES: Final = 10

    def __init__(self) -> None:
        self._postings: dict[str, _Postings] = {}
        self._lengths = array("f")

    @classmethod
    def build(cls, texts: Iterable[str]) -> Self:
        """An index of these texts; row ``i`` is the ``i``-th."""
        index = cls()
        index.add(texts)
        return index

    def __len__(self) -> int:
        return len(self._lengths)

    def add(self, texts: Iterable[str]) -> None:
        """Append texts as the next rows; costs what their own tokens cost."""
        for text in texts:
            row = len(self._lengths)
            counts = Counter(tokens(text))
            for token, count in counts.items():
                postings = self._postings.setdefault(token, _Postings())
                postings.rows.append(row)
                postings.counts.append(count)
            self._lengths.append(sum(count * weight(token) for token, count in counts.items()))

    def scores(self, query: str) -> Scores:
        """BM25 of every row as a share of the best that any text could reach: float32[n] in 0..1.

        The divisor depends on the query alone, so the order is plain BM25's (Robertson & Zaragoza,
        2009, with Lucene's never-negative idf). As a share it means the same for a query of three
        words and of thirty. Terms that the user never wrote count in the divisor: they speak against
        an answer. The cost is that of the postings of the query's terms, and n for the result.
        """
        n = len(self._lengths)
        scores = np.zeros(n, np.float32)
        if not n:
            return scores
        lengths = np.frombuffer(self._lengths, np.float32)
        stretch = self.B / (float(lengths.mean()) or 1.0)
        best = 0.0
        for token, count in Counter(tokens(query)).items():
            postings = self._postings.get(token)
            holders = len(postings.rows) if postings else 0
            memories = n + self.PRIOR_MEMORIES
            rarity = math.log1p((memories - holders + 0.5) / (holders + 0.5))
            value = count * weight(token) * rarity
            best += value * (self.K1 + 1)
            if postings:
                rows = np.frombuffer(postings.rows, np.int32)
                counts = np.frombuffer(postings.counts, np.float32)
                saturation = self.K1 * (1 - self.B + stretch * lengths[rows])
                scores[rows] += value * (self.K1 + 1) * counts / (counts + saturation)
        return scores / np.float32(best) if best else scores


def questions(query: str) -> list[str]:
    """The query itself, then each of its questions where it holds more than just one: 1 to MAX_PARTS.

    People ask two things in one breath, or chat before they ask; each question is ranked for itself
    and a memory keeps its best relevance. The whole stays, because chat can be the context.

    >>> questions("Nice day! Where do I live? And who is Tom?")
    ['Nice day! Where do I live? And who is Tom?', 'Where do I live?', 'And who is Tom?']
    """
    sentences = map(str.strip, _SENTENCE_END.split(query))
    asked = [sentence for sentence in sentences if _QUESTION.search(sentence)]
    if asked == [query.strip()]:
        return [query]
    return [query, *dict.fromkeys(asked)][:MAX_PARTS]


def probe(query: str, speakers: Collection[str]) -> str:
    """The query as it should be embedded: without the speakers' names.

    A speaker's name stands in every memory of that conversation, tells none of them apart, and yet
    draws an embedding towards itself. BM25 wants the query with the names: there rarity settles it.

    >>> probe("When did Ann's brother call?", {"Ann"})
    'When did brother call?'
    """
    names = sorted(filter(None, speakers), key=lambda name: (-len(name), name))
    if not names:
        return query
    either = "|".join(re.escape(name) for name in names)
    bare = re.sub(f"(?<![A-Za-z])(?:{either})(?:['’]s)?(?![A-Za-z])", "", query)
    bare = " ".join(bare.split())
    return bare if re.search(r"\w", bare) else query


@dataclass(frozen=True, slots=True)
class Scale:
    """Where a kind of score lies for unrelated memories, and how widely it usually varies.

    ``centre`` is the middle score of a query with the memories that do not answer it; ``spread`` the
    standard deviation over one user's memories; ``least`` the smallest spread that is believed.
    """

    centre: float
    spread: float
    least: float

    def deviations(self, scores: Scores) -> NDArray[np.float64]:
        """Scores as deviations from ``centre``, along the last axis (the memories of one user)."""
        exact = scores.astype(np.float64)
        n = exact.shape[-1]
        variance = exact.var(axis=-1, keepdims=True) if n else np.zeros((*exact.shape[:-1], 1))
        pooled = (n * variance + PRIOR_SCORES * self.spread**2) / (n + PRIOR_SCORES)
        deviations: NDArray[np.float64] = (exact - self.centre) / np.maximum(np.sqrt(pooled), self.least)
        return deviations


PRIOR_SCORES: Final = 20
"""How many memories the usual spread outweighs: below, a user's own spread says little."""

COSINE: Final = Scale(centre=0.08, spread=0.08, least=0.04)
"""Of the ``use`` embeddings; another model needs its own centre (e5's, say, is about 0.75)."""

LEAST_SPREAD: Final = 0.01


def scale_of(unrelated: Scores) -> Scale:
    """The scale of a model, from cosines ``[questions, memories]`` of which none belong together."""
    spread = max(LEAST_SPREAD, float(unrelated.std(axis=1).mean()))
    return Scale(centre=float(np.median(unrelated)), spread=spread, least=spread / 2)


@dataclass(frozen=True, slots=True)
class Scales:
    """A model's scale by the writing of the question.

    To a model that was not taught a language all of it is alike: unrelated Chinese has a cosine of 0.6 in an
    English one, and unrelated English 0.1.
    """

    latin: Scale
    cjk: Scale

    def of(self, query: str) -> Scale:
        """The scale for a question; with both writings in it, that of Chinese, Japanese and Korean."""
        return self.cjk if has_cjk(query) else self.latin


COSINES: Final = Scales(latin=COSINE, cjk=COSINE)

COVERAGE: Final = Scale(centre=0.01, spread=0.03, least=0.015)
"""Of :meth:`LexicalIndex.scores`."""

DENSE_SHARE: Final = 0.5
EVEN_DEVIATIONS: Final = 3.0
SOFTNESS: Final = 1.5


def fuse(dense: Scores, lexical: Scores, cosine: Scale = COSINE) -> Scores:
    """The relevance, 0..1, of each memory from its cosine and its BM25; shape ``[..., n]``, both alike.

    Both are divided by how much they vary over the user's memories for this query, so that the one
    that tells the memories apart decides: the order is that of fused z-scores. A z-score is centred
    on the user's own mean, which makes the best of a bad lot look good; here the centre is fixed at
    what unrelated memories usually score, which shifts all memories of a query alike. So one number
    sorts the list and can be compared between queries, users and sizes of store: about 0.05 is an
    unrelated memory, 0.5 (three deviations) is where answers begin, beyond 0.8 lies the typical one.
    It is no probability: asked of the wrong user, among 300 chats on like topics, the best has 0.7.

    The bend ``u / sqrt(1 + u²)`` keeps float32 from rounding strong hits to the same 1.
    """
    if dense.shape != lexical.shape:
        raise ValueError(f"dense is {dense.shape}, lexical {lexical.shape}: not the same memories")
    evidence = DENSE_SHARE * cosine.deviations(dense) + (1 - DENSE_SHARE) * COVERAGE.deviations(lexical)
    u = (evidence - EVEN_DEVIATIONS) / SOFTNESS
    return (0.5 + 0.5 * u / np.sqrt(1 + u * u)).astype(np.float32)


CARRIED: Final = 0.2


def carry(relevance: Scores, previous: NDArray[np.int64]) -> Scores:
    """Relevance with a share of the memory that came just before in the same session.

    What answers a query often replies to what resembles it: "How was the trip?" … "Cold, but fun".
    ``previous`` holds rows, -1 where a memory begins its session. Stays within 0..1, never lowers.
    """
    before = np.where(previous >= 0, relevance[previous], np.float32(0))
    return relevance + np.float32(CARRIED) * before * (1 - relevance)


def top(relevance: Scores, allowed: NDArray[np.bool_] | None, k: int) -> NDArray[np.int64]:
    """The rows of the ``k`` most relevant allowed memories, best first; of equals the newest first."""
    rows = np.arange(len(relevance)) if allowed is None else np.flatnonzero(allowed)
    newest_first = rows[::-1]
    order = np.argsort(-relevance[newest_first], kind="stable")[: max(k, 0)]
    return newest_first[order].astype(np.int64)
