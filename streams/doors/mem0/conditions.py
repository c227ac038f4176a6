"""Conditions on memories that our own filters do not have: OR, NOT, and parts of a text."""

from __future__ import annotations

from dataclasses import dataclass

from schemas.memories import Memory
from streams.recall.filtering import Condition, field_of


@dataclass(frozen=True, slots=True)
class Holds:
    """All conditions hold; true if there are none."""

    conditions: tuple[Condition, ...]

    def matches(self, memory: Memory) -> bool:
        return all(one.matches(memory) for one in self.conditions)


@dataclass(frozen=True, slots=True)
class AnyOf:
    """At least one condition holds."""

    conditions: tuple[Condition, ...]

    def matches(self, memory: Memory) -> bool:
        return any(one.matches(memory) for one in self.conditions)


@dataclass(frozen=True, slots=True)
class Without:
    """The condition does not hold."""

    condition: Condition

    def matches(self, memory: Memory) -> bool:
        return not self.condition.matches(memory)


@dataclass(frozen=True, slots=True)
class HasOne:
    """The field is a list with at least one of these values, or a text that contains one."""

    field: str
    values: frozenset[str]

    def matches(self, memory: Memory) -> bool:
        found = field_of(memory, self.field)
        if isinstance(found, str):
            return any(value in found for value in self.values)
        return isinstance(found, list) and any(isinstance(one, str) and one in self.values for one in found)


@dataclass(frozen=True, slots=True)
class Says:
    """The field's text, or one of its texts, contains `words`; with `folded`, regardless of case."""

    field: str
    words: str
    folded: bool = False

    def matches(self, memory: Memory) -> bool:
        found = memory.text if self.field == "text" else field_of(memory, self.field)
        texts = [one for one in (found if isinstance(found, list) else [found]) if isinstance(one, str)]
        if self.folded:
            return any(self.words.casefold() in one.casefold() for one in texts)
        return any(self.words in one for one in texts)
