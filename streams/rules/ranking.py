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
import unicodedata
from array import array
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float32]

_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_RUN = re.compile(f"[{_CJK}]+|[^\\W_{_CJK}]+(?:'[^\\W_{_CJK}]+)*")
_CJK_START = re.compile(f"[{_CJK}]")
_ACCENT = re.compile("[\u0300-\u036f]")
_SENTENCE_END = re.compile(r"(?<=[。！？!?；;\n])(?=\s*\w)|(?<=\.)\s+")
_QUESTION = re.compile(r"\w.*[?？]\W*$", re.DOTALL)

_ENGLISH_FUNCTION_WORDS = """
    a about after again all also am an and any are as at be been before being but by can could couldn
    did didn do does doesn doing don down for from had hadn has hasn have haven having he her here hers
    him his how i if in into is isn it its just may me might mine must my no nor not of off on or our
    ours out over shall she should shouldn so some than that the their theirs them then there these they
    this those to too up us very was wasn we were weren what when where which who whom whose why will
    with won would wouldn you your yours
"""
_CHINESE_FUNCTION_CHARACTERS = frozenset("的了是我你他她它们这那在有和就都也很不吗呢啊吧么什呀个其")

MINOR_WEIGHT: Final = 0.2
MAX_PARTS: Final = 6


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """The stem of a lower-case English word: its possessive, plural, -ing, -ed, final e and y go.

    Far lighter than Porter's: on LoCoMo, cutting derivations (-ness, -ation, -er …) as well gave
    nothing more. A stem is a key, not a word: "hiking", "hiked" and "hikes" all give "hik".
    """
    word = word.partition("'")[0]
    if len(word) <= 3 or not (word.isascii() and word.isalpha()):
        return word
    if word.endswith(("ies", "ied")):
        word = word[:-3] + "y"
    elif word.endswith(("ses", "xes", "zes")):
        word = word[:-2]
    elif word[-1] == "s" and word[-2] not in "su":
        word = word[:-1]
    for ending in ("ing", "ed"):
        bare = word.removesuffix(ending)
        if bare != word and len(bare) >= 3 and not set("aeiouy").isdisjoint(bare):
            doubled = bare[-1] == bare[-2] and bare[-1] not in "lsz"
            word = bare[:-1] if doubled else bare
            break
    if len(word) > 3 and word[-1] == "e":
        word = word[:-1]
    if len(word) > 3 and word[-1] == "y":
        word = word[:-1] + "i"
    return word


_FUNCTION_STEMS = frozenset(map(stem, _ENGLISH_FUNCTION_WORDS.split()))


def tokens(text: str) -> list[str]:
    """The index terms of a text, in reading order.

    Words and numbers are lower-cased, stripped of accents and stemmed. A run of Chinese, Japanese or
    Korean gives its character pairs and, after them, its single characters (which weigh little, see
    :func:`weight`): a question seldom repeats a whole word of the answer, 生日 asks for 出生.

    >>> tokens("Málaga, hiking"), tokens("喜欢猫")
    (['malaga', 'hik'], ['喜欢', '欢猫', '喜', '欢', '猫'])
    """
    if not text.isascii():
        text = unicodedata.normalize("NFKD", text)
        text = unicodedata.normalize("NFC", _ACCENT.sub("", text)).replace("’", "'")
    found: list[str] = []
    for run in _RUN.findall(text.lower()):
        if _is_cjk(run):
            found += [run[i : i + 2] for i in range(len(run) - 1)]
            found += run
        else:
            found.append(stem(run))
    return found


def weight(token: str) -> float:
    """How much a query's token counts: function words and single CJK characters are minor.

    They are not dropped, so that a query of nothing else still finds something. Rarity (idf) alone does
    not see that "what" and "did" ask rather than tell: people seldom write them into memories.
    """
    if not _is_cjk(token):
        return MINOR_WEIGHT if token in _FUNCTION_STEMS else 1.0
    if len(token) == 1 or _CHINESE_FUNCTION_CHARACTERS.issuperset(token):
        return MINOR_WEIGHT
    return 1.0


def _is_cjk(token: str) -> bool:
    return _CJK_START.match(token) is not None


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
        return self.cjk if _CJK_START.search(query) else self.latin


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
