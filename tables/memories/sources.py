"""A memory's sources: its messages (not all, if they were repeated very often), and who wrote them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from schemas.memories import Memory
from schemas.sources import SOURCES, sources_in, together

#: The same limit as in a request to remember.
MOST: Final = 1_000


def sources(*several: Iterable[str]) -> tuple[str, ...]:
    """Return each id once, in the order of its first use; of more than `MOST`, the first and the last half.

    >>> sources(["a", "b"], ["b", "c"])
    ('a', 'b', 'c')
    """
    ids = tuple(dict.fromkeys(identity for some in several for identity in some))
    return ids if len(ids) <= MOST else ids[: MOST // 2] + ids[-MOST // 2 :]


def said_by(memories: Iterable[Memory]) -> list[str]:
    """Return who wrote the messages of these memories."""
    return together(*(sources_in(memory.meta, memory.kind) for memory in memories))


def said_by_both(memory: Memory, copy: Memory) -> Memory:
    """Return the memory with the near-copy's writers added: it is forgotten with either's memories."""
    both = said_by((memory, copy))
    if both == sorted(sources_in(memory.meta, memory.kind)):
        return memory
    return replace(memory, meta={**memory.meta, SOURCES: both})
