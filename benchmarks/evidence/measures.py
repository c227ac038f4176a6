"""How well a ranking finds a question's evidence: pure functions of ranks from 1; infinity means not found."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

KS: Final = (1, 3, 5, 10)
NDCG_AT: Final = (5, 10)
#: Any message of a group is enough.
Group = frozenset[str]


def recall(ranks: Sequence[float], k: int) -> float:
    """The share of the evidence in the first k."""
    return sum(rank <= k for rank in ranks) / len(ranks)


def recall_any(ranks: Sequence[float], k: int) -> float:
    """1 where some of the evidence is in the first k, else 0; its mean is the hit rate."""
    return float(min(ranks) <= k)


def recall_all(ranks: Sequence[float], k: int) -> float:
    """1 where all of the evidence is in the first k, else 0."""
    return float(max(ranks) <= k)


def reciprocal(ranks: Sequence[float]) -> float:
    """One over the rank of the first piece; its mean is the MRR."""
    return 1 / min(ranks)


def ndcg(ranks: Sequence[float], k: int) -> float:
    """The gain as a share of the best order's (Järvelin, 2002); each piece in the first k gains 1/log2(1 + rank)."""
    best = sum(1 / math.log2(1 + rank) for rank in range(1, min(len(ranks), k) + 1))
    return sum(1 / math.log2(1 + rank) for rank in ranks if rank <= k) / best


def measured(ranks: Sequence[float]) -> dict[str, float]:
    """All measures of one question."""
    return {
        **{f"r{k}": recall(ranks, k) for k in KS},
        **{f"recall_any{k}": recall_any(ranks, k) for k in KS},
        **{f"recall_all{k}": recall_all(ranks, k) for k in KS},
        "mrr": reciprocal(ranks),
        **{f"ndcg{k}": ndcg(ranks, k) for k in NDCG_AT},
    }


def current_first(updates: Sequence[tuple[str, str]], places: Mapping[str, float]) -> float:
    """1 if no outdated statement is before the one that updates it, else 0; NaN if the question has no such pair.

    An outdated statement that is not found is not before it.
    """
    pairs = list(updates)
    if not pairs:
        return math.nan
    return float(
        all(places.get(new, math.inf) < places.get(old, math.inf) or old not in places for old, new in pairs)
    )


def places_of(order: Iterable[Collection[str]]) -> dict[str, int]:
    """The rank of each message or session in a ranking of memories that hold them; the first place counts."""
    places: dict[str, int] = {}
    for rank, held in enumerate(order, 1):
        for one in held:
            places.setdefault(one, rank)
    return places


def units_of(evidence: Iterable[Group], places: Mapping[str, float]) -> list[Group]:
    """The evidence by the memory that holds it: two pieces in one memory are one unit.

    `places` must be those of a ranking that lost nothing, so that units which another one lost count one by one.
    """
    units: dict[frozenset[float], Group] = {}
    lost = list[Group]()
    for group in evidence:
        holders = frozenset(places[one] for one in group if one in places)
        if holders:
            units[holders] = units.get(holders, frozenset()) | group
        else:
            lost.append(group)
    return [*units.values(), *lost]


def ranks_of(units: Iterable[Group], places: Mapping[str, float]) -> list[float]:
    """The rank of each unit: that of its first message; infinity if none is in the ranking."""
    return sorted(min(places.get(one, math.inf) for one in unit) for unit in units)


def fused(first: Sequence[int], second: Sequence[int], constant: int = 60) -> list[float]:
    """Reciprocal-rank fusion (Cormack, 2009) of each candidate's two ranks; more is better."""
    return [1 / (constant + a) + 1 / (constant + b) for a, b in zip(first, second, strict=True)]
