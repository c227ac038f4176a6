"""Which messages a memory rests on: of those that were said again and again, not all."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

#: As many as a request to remember may name.
MOST: Final = 1_000


def sources(*several: Iterable[str]) -> tuple[str, ...]:
    """Each id once, in the order of its first use; of more than `MOST`, the first half and the newest.

    >>> sources(["a", "b"], ["b", "c"])
    ('a', 'b', 'c')
    """
    ids = tuple(dict.fromkeys(identity for some in several for identity in some))
    return ids if len(ids) <= MOST else ids[: MOST // 2] + ids[-MOST // 2 :]
