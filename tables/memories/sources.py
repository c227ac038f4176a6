"""A memory's sources: the ids of its messages (at most `MOST`), and the writers of these messages."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from schemas.memories import Memory
from schemas.sources import SOURCES, sources_in, together

#: The maximum number of message ids of a memory. A request to remember has the same limit.
MOST: Final = 1_000


def sources(*several: Iterable[str]) -> tuple[str, ...]:
    """Return each message id once, in the order of first use. If there are more than `MOST`, drop ids in the middle.

    >>> sources(["a", "b"], ["b", "c"])
    ('a', 'b', 'c')
    """
    ids = tuple(dict.fromkeys(identity for some in several for identity in some))
    return ids if len(ids) <= MOST else ids[: MOST // 2] + ids[-MOST // 2 :]


def said_by(memories: Iterable[Memory]) -> list[str]:
    """Return the writers of the messages of these memories."""
    return together(*(sources_in(memory.meta, memory.kind) for memory in memories))


def said_by_both(memory: Memory, copy: Memory) -> Memory:
    """Return the memory with the writers of the near-copy added.

    A search for all memories of a writer, for example to forget them, must find the memory by each of these writers.
    """
    both = said_by((memory, copy))
    if both == sorted(sources_in(memory.meta, memory.kind)):
        return memory
    return replace(memory, meta={**memory.meta, SOURCES: both})
