"""Conditions on memories that Siltstone's own filters do not have: OR, NOT, and words in a text."""

from __future__ import annotations

from dataclasses import dataclass

from schemas.memories import Memory
from streams.recall.filtering import Condition, field_of


@dataclass(frozen=True, slots=True)
class Holds:
    """A condition that matches if all of its `conditions` match, or if it has none."""

    conditions: tuple[Condition, ...]

    def matches(self, memory: Memory) -> bool:
        return all(one.matches(memory) for one in self.conditions)


@dataclass(frozen=True, slots=True)
class AnyOf:
    """A condition that matches if at least one of its `conditions` matches."""

    conditions: tuple[Condition, ...]

    def matches(self, memory: Memory) -> bool:
        return any(one.matches(memory) for one in self.conditions)


@dataclass(frozen=True, slots=True)
class Without:
    """A condition that matches if another `condition` does not match."""

    condition: Condition

    def matches(self, memory: Memory) -> bool:
        return not self.condition.matches(memory)


@dataclass(frozen=True, slots=True)
class HasOne:
    """A condition on a field.

    It matches a list with at least one of the `values`, or a text that contains at least one of them.
    """

    field: str
    values: frozenset[str]

    def matches(self, memory: Memory) -> bool:
        found = field_of(memory, self.field)
        if isinstance(found, str):
            return any(value in found for value in self.values)
        return isinstance(found, list) and any(isinstance(one, str) and one in self.values for one in found)


@dataclass(frozen=True, slots=True)
class Says:
    """A condition on a field. It matches a text that contains `words`, or a list with such a text.

    If `folded` is true, upper and lower case are treated as equal.
    """

    field: str
    words: str
    folded: bool = False

    def matches(self, memory: Memory) -> bool:
        found = memory.text if self.field == "text" else field_of(memory, self.field)
        texts = [one for one in (found if isinstance(found, list) else [found]) if isinstance(one, str)]
        if self.folded:
            return any(self.words.casefold() in one.casefold() for one in texts)
        return any(self.words in one for one in texts)
