"""Relevance of a user's memories to a query: BM25 and cosine, fused into one number.

All functions are pure and deterministic; embedding and storage are elsewhere:

    parts = questions(query)
    dense = embed([probe(part, speakers) for part in parts]) @ vectors.T  # [parts, n]
    lexical = np.stack([index.scores(part) for part in parts])            # [parts, n]
    relevance = carry(fuse(dense, lexical).max(axis=0), previous)
    hits = top(relevance, allowed, k=10)

One row is one memory, in the order in which they were added; ``dense``, ``lexical``, ``previous`` and
``allowed`` have the same rows.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from streams.models.embedding.calibration import COSINE, Scale
from tables.search.terms import MOST, Terms, Words, hash_of
from tables.search.tokens import tokens, weight

Scores = NDArray[np.float32]

_ENDS: Final = "。！？!?؟；;؛\n"
_PIECE = re.compile(f"[^{_ENDS}.]*[{_ENDS}.]?")

MAX_PARTS: Final = 6


K1: Final = 1.0
B: Final = 0.5
"""`K1` and `B` are chosen where the results on LoCoMo and MemDaily are both flat."""

PRIOR_MEMORIES: Final = 10
"""Imaginary memories without any of the terms: they keep term rarities plausible for a user with three memories."""

_BUCKET_BITS: Final = 16


def bm25(terms: Terms, query: str) -> Scores:
    """BM25 of every text as a share of the highest possible score: float32[n] in 0..1.

    The divisor depends on the query alone, so the order is plain BM25's (Robertson & Zaragoza, 2009, with
    Lucene's never-negative idf). As a share it means the same for a query of three words and of thirty. Terms
    that the user never wrote count in the divisor: they are evidence against an answer.

    It makes one pass over all terms of the texts: a table of 65,536 buckets finds the few that can match the query.
    """
    n = len(terms)
    scores = np.zeros(n, np.float32)
    asked = Counter(tokens(query))
    if not n or not asked:
        return scores
    hashes = np.array([hash_of(token) for token in asked], np.uint64)
    places, which = _hits(terms.words, hashes)
    rows = np.searchsorted(np.cumsum(terms.sizes), places, side="right")
    counts = (terms.words[places] & np.uint64(MOST)).astype(np.float32)
    holders = np.bincount(which, minlength=len(hashes))
    values = np.empty(len(hashes), np.float32)
    best = 0.0
    for place, (token, count) in enumerate(asked.items()):
        rarity = math.log1p((n + PRIOR_MEMORIES - int(holders[place]) + 0.5) / (int(holders[place]) + 0.5))
        value = count * weight(token) * rarity * (K1 + 1)
        best += value
        values[place] = value
    stretch = B / (float(terms.lengths.mean()) or 1.0)
    saturation = K1 * (1 - B + stretch * terms.lengths[rows])
    np.add.at(scores, rows, values[which] * counts / (counts + saturation))
    return scores / np.float32(best) if best else scores


def _hits(words: Words, hashes: Words) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the places of words that have one of the hashes, and which hash; by hash, then by place."""
    order = np.argsort(hashes)
    ordered = hashes[order]
    shift = np.uint64(64 - _BUCKET_BITS)
    buckets = np.zeros(1 << _BUCKET_BITS, np.bool_)
    buckets[ordered >> shift] = True
    places = np.flatnonzero(buckets[words >> shift])
    found = words[places] & ~np.uint64(MOST)
    nearest = np.minimum(np.searchsorted(ordered, found), len(ordered) - 1)
    same = ordered[nearest] == found
    places, which = places[same], order[nearest[same]]
    by_hash = np.argsort(which, kind="stable")
    return places[by_hash], which[by_hash]


class LexicalIndex:
    """:func:`bm25` over texts that are added to this index, at the end.

    Statistics (rarity, mean length) are taken at query time, so adding in pieces equals building at once.
    """

    def __init__(self) -> None:
        self._terms = Terms.of(())

    @classmethod
    def build(cls, texts: Iterable[str]) -> Self:
        """An index of these texts; row ``i`` is the ``i``-th."""
        index = cls()
        index.add(texts)
        return index

    def __len__(self) -> int:
        return len(self._terms)

    def add(self, texts: Iterable[str]) -> None:
        """Append texts as the next rows."""
        self._terms = self._terms.with_more(Terms.of(texts))

    def scores(self, query: str) -> Scores:
        """:func:`bm25` of every row."""
        return bm25(self._terms, query)


def questions(query: str) -> list[str]:
    """The query itself, then each of its questions unless one question is the whole query: 1 to MAX_PARTS.

    People ask two things at once, or chat before they ask. Each question is ranked separately, and a memory
    keeps its best relevance. The whole query stays, because chat can be the context.

    >>> questions("Nice day! Where do I live? And who is Tom?")
    ['Nice day! Where do I live? And who is Tom?', 'Where do I live?', 'And who is Tom?']
    """
    asked = [sentence for sentence in sentences(query) if is_question(sentence)]
    if asked == [query.strip()]:
        return [query]
    return [query, *dict.fromkeys(asked)][:MAX_PARTS]


def sentences(text: str) -> list[str]:
    """Split after a mark that a word follows, and after a full stop that a space follows.

    >>> sentences("Well... he said 3.5! What?!")
    ['Well...', 'he said 3.5!', 'What?!']
    """
    pieces = _PIECE.findall(text)  # the last one is empty
    if len(pieces) <= 2:
        return [text.strip()]
    begins = [False] * len(pieces)
    for place in range(len(pieces) - 2, -1, -1):
        first = pieces[place].lstrip()[:1]
        begins[place] = (first.isalnum() or first == "_") if first else begins[place + 1]
    found, so_far = [], list[str]()
    for place, piece in enumerate(pieces[:-1]):
        so_far.append(piece)
        if pieces[place + 1][:1].isspace() if piece[-1] == "." else begins[place + 1]:
            found.append("".join(so_far).strip())
            so_far.clear()
    return [*found, "".join(so_far).strip()]


def is_question(text: str) -> bool:
    """True if the text ends with a question mark; other punctuation or spaces may follow it."""
    asked = False
    for character in reversed(text):
        if character.isalnum() or character == "_":
            return asked
        asked = asked or character in "?？؟"
    return False


def probe(query: str, speakers: Collection[str]) -> str:
    """Return the query for embedding: without the speakers' names.

    A speaker's name occurs in every memory of that conversation, so it does not tell them apart, and yet it
    pulls the embedding towards itself. BM25 takes the query with the names: there their rarity gives the weight.

    >>> probe("When did Ann's brother call?", {"Ann"})
    'When did brother call?'
    """
    names = sorted([name for name in speakers if name and name in query], key=lambda name: (-len(name), name))
    if not names:
        return query
    either = "|".join(re.escape(name) for name in names)
    bare = re.sub(f"(?<![A-Za-z])(?:{either})(?:['’]s)?(?![A-Za-z])", "", query)
    bare = " ".join(bare.split())
    return bare if re.search(r"\w", bare) else query


COVERAGE: Final = Scale(centre=0.01, spread=0.03, least=0.015)
"""The scale of :meth:`LexicalIndex.scores`."""

DENSE_SHARE: Final = 0.5
EVEN_DEVIATIONS: Final = 3.0
SOFTNESS: Final = 1.5


def fuse(dense: Scores, lexical: Scores, cosine: Scale = COSINE) -> Scores:
    """Return the relevance, 0..1, of each memory from its cosine and its BM25, both of shape ``[..., n]``.

    Each is divided by its spread over the user's memories for this query, so the score that tells the
    memories apart decides: the order is that of fused z-scores. A z-score is centred on the user's own
    mean, which makes the best of bad candidates look good. Here the centre is fixed at the usual score
    of unrelated memories, which shifts all memories of a query alike. So one number sorts the list and
    can be compared between queries, users and sizes of store: an unrelated memory has about 0.05,
    answers begin at 0.5 (three deviations), and a typical answer has more than 0.8. It is not a
    probability: asked of the wrong user, among 300 chats on similar topics, the best memory has 0.7.

    The bend ``u / sqrt(1 + u²)`` keeps float32 from rounding strong hits to the same 1.
    """
    if dense.shape != lexical.shape:
        raise ValueError(f"dense is {dense.shape}, lexical {lexical.shape}: not the same memories")
    evidence = DENSE_SHARE * cosine.deviations(dense) + (1 - DENSE_SHARE) * COVERAGE.deviations(lexical)
    u = (evidence - EVEN_DEVIATIONS) / SOFTNESS
    return (0.5 + 0.5 * u / np.sqrt(1 + u * u)).astype(np.float32)


CARRIED: Final = 0.2


def carry(relevance: Scores, previous: NDArray[np.int64]) -> Scores:
    """Add to each relevance a share of that of the preceding memory in the same session.

    An answer often follows a memory that resembles the query: "How was the trip?" … "Cold, but fun".
    ``previous`` holds rows, -1 for the first memory of a session. Stays within 0..1, never lowers.
    """
    before = np.where(previous >= 0, relevance[previous], np.float32(0))
    return relevance + np.float32(CARRIED) * before * (1 - relevance)


def top(relevance: Scores, allowed: NDArray[np.bool_] | None, k: int) -> NDArray[np.int64]:
    """The rows of the ``k`` most relevant allowed memories, best first; among equals, the newest first."""
    rows = np.arange(len(relevance)) if allowed is None else np.flatnonzero(allowed)
    newest_first = rows[::-1]
    order = np.argsort(-relevance[newest_first], kind="stable")[: max(k, 0)]
    return newest_first[order].astype(np.int64)
