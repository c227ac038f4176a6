"""Counts of the effects of applied events, such as the number of new or merged memories."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from schemas.events import LongTermEvent
from schemas.memories import Memory

#: The names of the effects that `Applied.count` counts.
Effect = Literal["new", "edited", "repeated", "archived", "restored", "removed", "expired", "spared"]


@dataclass(slots=True)
class Applied:
    """The effects of events: the number of times that each effect occurred, and two lists.

    `fresh` has the events that were not applied before. `born` has the new memories and summaries, but no items.
    """

    new: int = 0
    merged: int = 0
    touched: int = 0
    edited: int = 0
    superseded: int = 0
    #: Edits by which a user says that a memory still holds.
    reinstated: int = 0
    summarized: int = 0
    archived: int = 0
    restored: int = 0
    removed: int = 0
    expired: int = 0
    repeated: int = 0
    forgotten: int = 0
    unknown: int = 0
    spared: int = 0
    refused: int = 0
    fresh: list[LongTermEvent] = field(default_factory=list, compare=False)
    born: list[Memory] = field(default_factory=list, compare=False)

    def count(self, effect: Effect) -> None:
        """Count one occurrence of an effect."""
        setattr(self, effect, getattr(self, effect) + 1)

    def effects(self) -> dict[str, int]:
        """Return the counts by name, without zeros."""
        counts = {name: getattr(self, name) for name in self.__slots__ if name not in ("fresh", "born")}
        return {name: count for name, count in counts.items() if count}

    def add(self, other: Applied) -> None:
        for name in self.__slots__:
            setattr(self, name, getattr(self, name) + getattr(other, name))
