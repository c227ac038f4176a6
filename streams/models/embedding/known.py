"""What was measured of certain embedding models with questions about chats: benchmarks/README.md, "use and e5"."""

from __future__ import annotations

from typing import Final

#: The weight of the cosine beside BM25, whose weight is the rest, for a model that was not measured. It is the best
#: weight for `use`.
DENSE_SHARE: Final = 0.5

_DENSE_SHARES: Final = {"use-multilingual-v3": DENSE_SHARE, "multilingual-e5-small-q4": 0.7}


def dense_share(name: str) -> float:
    """Return the weight of the cosine beside BM25 for a model, by the name that shards record.

    >>> dense_share("multilingual-e5-small-q4"), dense_share("another")
    (0.7, 0.5)
    """
    return _DENSE_SHARES.get(name, DENSE_SHARE)
