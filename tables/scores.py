"""What memories are worth at a moment, asked for together: one by one, each takes milliseconds."""

from __future__ import annotations

from collections.abc import Iterable

from schemas.memories import Memory
from schemas.settings import LifecycleSettings
from tables.ageing import Ageing


class Scores:
    """Scores by what they are made of; what was looked up once is at hand."""

    def __init__(self, ageing: Ageing, lifecycle: LifecycleSettings) -> None:
        self._ageing, self.lifecycle = ageing, lifecycle
        self._found: dict[tuple[float, bool, int, int], float] = {}

    def look_up(self, memories: Iterable[Memory], at: int) -> None:
        """Have at hand what these are worth at `at` (epoch ms)."""
        new = {_made_of(memory, at): memory for memory in memories}
        found = self._ageing.scored(list(new.values()), at, self.lifecycle)
        self._found |= {key: one.score for key, one in zip(new, found, strict=True)}

    def of(self, memory: Memory, at: int) -> float:
        """What a memory is worth at `at` (epoch ms)."""
        if _made_of(memory, at) not in self._found:
            self.look_up([memory], at)
        return self._found[_made_of(memory, at)]


def _made_of(memory: Memory, at: int) -> tuple[float, bool, int, int]:
    """What a memory's score at `at` (epoch ms) depends on."""
    return memory.importance, memory.pinned, memory.last_accessed, at
