"""The data of a user's memories that ranking reads, as arrays: one row is one memory, oldest first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from schemas.memories import Memory
from tables.search.stated import Stated
from tables.search.terms import Terms, counted

Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Candidates:
    """Arrays with one element for each memory, and the terms and statements of the memories' texts.

    `seqs`, `created_at` and `last_accessed` (epoch ms) and `previous` are int64[n], `importance` is float64[n],
    `pinned` and `current` (see `Memory.current`) are bool[n]. `previous` is the row of the preceding memory in the
    same session, or -1.
    """

    seqs: Numbers
    created_at: Numbers
    importance: npt.NDArray[np.float64]
    last_accessed: Numbers
    pinned: npt.NDArray[np.bool_]
    current: npt.NDArray[np.bool_]
    previous: Numbers
    terms: Terms
    stated: Stated

    @classmethod
    def of(cls, memories: Sequence[Memory]) -> Self:
        """Build the arrays from memories, oldest first."""
        texts = [counted(memory.text) for memory in memories]
        numbers = {session: number for number, session in enumerate({m.session_id for m in memories} - {None}, 1)}
        return cls(
            seqs=np.array([memory.seq for memory in memories], np.int64),
            created_at=np.array([memory.created_at for memory in memories], np.int64),
            importance=np.array([memory.importance for memory in memories], np.float64),
            last_accessed=np.array([memory.last_accessed for memory in memories], np.int64),
            pinned=np.array([memory.pinned for memory in memories], np.bool_),
            current=np.array([memory.current for memory in memories], np.bool_),
            previous=previous(np.array([numbers.get(memory.session_id, 0) for memory in memories], np.uint64)),
            terms=Terms.joined(texts),
            stated=Stated.of([one.stated for one in texts], [memory.said_at for memory in memories]),
        )

    def __len__(self) -> int:
        return len(self.seqs)


def previous(sessions: npt.NDArray[np.uint64]) -> Numbers:
    """Return for each row the preceding row of the same session, or -1. Session 0 means no session."""
    before = np.full(len(sessions), -1, np.int64)
    by_session = np.argsort(sessions, kind="stable")
    ordered = sessions[by_session]
    follows = np.flatnonzero((ordered[1:] == ordered[:-1]) & (ordered[1:] != 0))
    before[by_session[follows + 1]] = by_session[follows]
    return before
