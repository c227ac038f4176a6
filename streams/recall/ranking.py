"""Relevance of a user's memories to a query: BM25 and cosine, fused into one number.

All functions are pure and deterministic. They are used like this:

    parts = questions(query)
    dense = embed([probe(part, speakers) for part in parts]) @ vectors.T  # [parts, n]
    lexical = np.stack([bm25(terms, part) for part in parts])             # [parts, n]
    relevance = carry(fuse(dense, lexical).max(axis=0), previous)
    hits = top(relevance, allowed, k=10)

Each row stands for one memory, in the order in which the memories were added. ``dense``, ``lexical``, ``previous``
and ``allowed`` have the same rows.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection
from typing import Final

import numpy as np
from numpy.typing import NDArray

from schemas.embedding_models import USE
from streams.models.embedding.calibration import COSINE, Scale
from tables.search.terms import MOST, Terms, Words, hash_of
from tables.search.tokens import tokens, weight

Scores = NDArray[np.float32]

_ENDS: Final = "。！？!?؟；;؛\n"
_PIECE = re.compile(f"[^{_ENDS}.]*[{_ENDS}.]?")

MAX_PARTS: Final = 6


K1: Final = 1.0
B: Final = 0.5
"""`K1` and `B` are parameters of BM25. Small changes of them hardly change the results on LoCoMo and MemDaily."""

PRIOR_MEMORIES: Final = 10
"""The number of memories without any query term that are added to a user's memories when term rarity is computed.

Otherwise every term of a user who has only a few memories would count as frequent.
"""

_BUCKET_BITS: Final = 16


def bm25(terms: Terms, query: str) -> Scores:
    """Return the BM25 score of every text, divided by the query's highest possible score: float32[n] in 0..1.

    The divisor is the same for all texts, so their order is that of plain BM25 (Robertson & Zaragoza, 2009, with
    Lucene's never-negative idf). Because of the division, scores of short and long queries can be compared. Query
    terms that occur in no text also count in the divisor, because they are evidence against an answer.

    All terms of the texts are read once. A table of 65,536 buckets finds the few terms that can match the query.
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
    """Return the indexes of the words that have one of the hashes, and for each of these words the index of its hash.

    Both arrays are sorted by the index of the hash, and then by the index of the word.
    """
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


def questions(query: str) -> list[str]:
    """Return the whole query, and then each question in it: 1 to `MAX_PARTS` texts.

    If the whole query is one question, only the query is returned. People often ask two questions in one message, or
    chat before they ask. So memories are ranked for each text separately, and a memory gets the best of its
    relevances. The whole query is one of the texts, because the chat before a question can be its context.

    >>> questions("Nice day! Where do I live? And who is Tom?")
    ['Nice day! Where do I live? And who is Tom?', 'Where do I live?', 'And who is Tom?']
    """
    asked = [sentence for sentence in sentences(query) if is_question(sentence)]
    if asked == [query.strip()]:
        return [query]
    return [query, *dict.fromkeys(asked)][:MAX_PARTS]


def sentences(text: str) -> list[str]:
    """Split a text into sentences: after a full stop if a space follows, after other end marks if a word follows.

    >>> sentences("Well... he said 3.5! What?!")
    ['Well...', 'he said 3.5!', 'What?!']
    """
    pieces = _PIECE.findall(text)  # the last piece is always empty
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
    """Return the text to embed for a query: the query without the speakers' names.

    A speaker's name occurs in every memory of a conversation, so it does not distinguish these memories. But it has a
    strong influence on the vector. BM25 uses the query with the names, because BM25 weights each word by its rarity.

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
"""The scale of the scores of :func:`bm25` for memories that are unrelated to the query."""

EVEN_DEVIATIONS: Final = 3.0
SOFTNESS: Final = 1.5


def fuse(dense: Scores, lexical: Scores, cosine: Scale = COSINE, dense_share: float = USE.dense_share) -> Scores:
    """Return the relevance (0..1) of each memory from its cosine and its BM25, both of shape ``[..., n]``.

    Cosine and BM25 are each divided by their spread over the user's memories for this query. So the score that
    distinguishes the memories better has more influence, and the order is that of fused z-scores. But a z-score is
    centred on the mean of the user's own memories, so the best of many bad candidates would look good. Here the
    centre is the usual score of unrelated memories. This shifts all memories of a query by the same amount.

    So the relevance sorts the hits, and it can also be compared between queries, users and sizes of store. An
    unrelated memory has about 0.05, answers begin at 0.5 (three deviations), and a typical answer has more than 0.8.
    The relevance is not a probability: for a question that another user asked, the best of 300 chats on similar
    topics has 0.7.

    ``dense_share`` is the weight of the cosine: a model that finds more by itself has a larger one.

    The curve ``u / sqrt(1 + u²)`` is used because with it, float32 does not round all strong hits to 1.
    """
    if dense.shape != lexical.shape:
        raise ValueError(f"dense is {dense.shape}, lexical {lexical.shape}: not the same memories")
    evidence = dense_share * cosine.deviations(dense) + (1 - dense_share) * COVERAGE.deviations(lexical)
    u = (evidence - EVEN_DEVIATIONS) / SOFTNESS
    return (0.5 + 0.5 * u / np.sqrt(1 + u * u)).astype(np.float32)


CARRIED: Final = 0.2


def carry(relevance: Scores, previous: NDArray[np.int64]) -> Scores:
    """Increase each memory's relevance by a share of the relevance of the memory before it in the same session.

    An answer often follows a memory that resembles the query, as "Cold, but fun" follows "How was the trip?".
    ``previous`` has, for each memory, the row of the memory before it; -1 for the first memory of a session. The
    result stays within 0..1, and is never lower than the given relevance.
    """
    before = np.where(previous >= 0, relevance[previous], np.float32(0))
    return relevance + np.float32(CARRIED) * before * (1 - relevance)


def lifted(relevance: Scores, lift: float) -> Scores:
    """Return the relevance that the same evidence would have if answers began `lift` × `SOFTNESS` deviations lower.

    Some models give the answers in a script fewer deviations than others do, so that 0.5 would mean more for them.
    The order of the memories stays. It is applied to the values that are shown and compared with thresholds, and not
    before: the higher the relevances, the less :func:`carry` and the times of a question add to them.

    The curve of :func:`fuse` is r = 1/2 + sin(a)/2 with tan(a) = u, and the result is that of u + lift.
    """
    if not lift:
        return relevance
    sine = 2 * relevance.astype(np.float64) - 1
    cosine = np.sqrt(1 - sine * sine)
    raised = sine + lift * cosine
    return (0.5 + 0.5 * raised / np.hypot(cosine, raised)).astype(np.float32)


def top(relevance: Scores, allowed: NDArray[np.bool_] | None, k: int) -> NDArray[np.int64]:
    """Return the rows of the ``k`` most relevant allowed memories, best first. Of equal ones, the newest is first."""
    rows = np.arange(len(relevance)) if allowed is None else np.flatnonzero(allowed)
    newest_first = rows[::-1]
    order = np.argsort(-relevance[newest_first], kind="stable")[: max(k, 0)]
    return newest_first[order].astype(np.int64)
