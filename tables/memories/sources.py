"""What a memory rests on: which messages, of those that were said again and again not all; and who wrote them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from schemas.memories import Memory
from schemas.sources import SOURCES, sources_in, together

#: As many as a request to remember may name.
MOST: Final = 1_000


def sources(*several: Iterable[str]) -> tuple[str, ...]:
    """Each id once, in the order of its first use; of more than `MOST`, the first half and the newest.

    >>> sources(["a", "b"], ["b", "c"])
    ('a', 'b', 'c')
    """
    ids = tuple(dict.fromkeys(identity for some in several for identity in some))
    return ids if len(ids) <= MOST else ids[: MOST // 2] + ids[-MOST // 2 :]


def said_by(memories: Iterable[Memory]) -> list[str]:
    """Who wrote what these are made of."""
    return together(*(sources_in(memory.meta, memory.kind) for memory in memories))


def said_by_both(memory: Memory, copy: Memory) -> Memory:
    """The memory, with those who wrote the near-copy: it goes with either."""
    both = said_by((memory, copy))
    if both == sorted(sources_in(memory.meta, memory.kind)):
        return memory
    return replace(memory, meta={**memory.meta, SOURCES: both})
