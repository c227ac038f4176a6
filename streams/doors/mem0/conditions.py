"""Conditions on memories that Siltstone's own filters do not have: OR, NOT, and words in a text."""

from __future__ import annotations

from dataclasses import dataclass

from schemas.memories import Memory
from streams.recall.filtering import Condition, field_of


@dataclass(frozen=True, slots=True)
class Holds:
    """True if all `conditions` match, or if there are none."""

    conditions: tuple[Condition, ...]

    def matches(self, memory: Memory) -> bool:
        return all(one.matches(memory) for one in self.conditions)


@dataclass(frozen=True, slots=True)
class AnyOf:
    """True if at least one of the `conditions` matches."""

    conditions: tuple[Condition, ...]

    def matches(self, memory: Memory) -> bool:
        return any(one.matches(memory) for one in self.conditions)


@dataclass(frozen=True, slots=True)
class Without:
    """True if the `condition` does not match."""

    condition: Condition

    def matches(self, memory: Memory) -> bool:
        return not self.condition.matches(memory)


@dataclass(frozen=True, slots=True)
class HasOne:
    """True if the field is a list with at least one of these values, or a text that contains one."""

    field: str
    values: frozenset[str]

    def matches(self, memory: Memory) -> bool:
        found = field_of(memory, self.field)
        if isinstance(found, str):
            return any(value in found for value in self.values)
        return isinstance(found, list) and any(isinstance(one, str) and one in self.values for one in found)


@dataclass(frozen=True, slots=True)
class Says:
    """True if the field is a text that contains `words`, or a list with such a text. If `folded`, case is ignored."""

    field: str
    words: str
    folded: bool = False

    def matches(self, memory: Memory) -> bool:
        found = memory.text if self.field == "text" else field_of(memory, self.field)
        texts = [one for one in (found if isinstance(found, list) else [found]) if isinstance(one, str)]
        if self.folded:
            return any(self.words.casefold() in one.casefold() for one in texts)
        return any(self.words in one for one in texts)
