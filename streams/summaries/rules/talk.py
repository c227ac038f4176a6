"""The sentences of a day's conversation, its lines, and the selection of items."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, Generic, NamedTuple, TypeVar

from schemas.summaries import Decision, Insight, Preference, Problem, Todo
from streams.summaries.rules.lines import Line, lines
from streams.summaries.rules.sentences import content, sentences_of, trimmed
from streams.summaries.rules.turns import Turn

NEAR: Final = 0.8
"""If the longer of two items has at least this share of the shorter one's words, the shorter one says nothing new."""


class Talk:
    """The sentences and the lines of a day."""

    def __init__(self, turns: Iterable[Turn]) -> None:
        self.sentences: Final = sentences_of(turns)
        self.lines: Final[list[Line]] = lines(self.sentences)
        self._idle: dict[tuple[int, int], bool] = {}

    def of(self, kind: int) -> list[Line]:
        """Return the lines of a kind."""
        return [line for line in self.lines if line.kind == kind]

    def idle(self, place: int, clause: int) -> bool:
        """True if the clause is small talk."""
        known = self._idle.get((place, clause))
        if known is None:
            sentence = self.sentences[place]
            known = self._idle[place, clause] = sentence.cues.idle.search(sentence.opened[clause]) is not None
        return known


Kind = TypeVar("Kind", Preference, Decision, Todo, Problem, Insight)


class Found(NamedTuple, Generic[Kind]):
    """An item, its worth for the summary, and where it begins: (index of a sentence, index of its clause)."""

    item: Kind
    worth: float
    place: tuple[int, int]


def kept(found: Iterable[Found[Kind]], most: int, said: list[str]) -> tuple[Kind, ...]:
    """Return at most `most` items: the items with the highest worth, in the order of the day.

    A repetition of an item is not returned, but its sources are added to that item. What another section says, in
    `said`, is not repeated; the texts of the returned items are added to it.
    """
    best: list[Found[Kind]] = []
    for one in sorted(found, key=lambda one: (-one.worth, one.place)):
        for place, earlier in enumerate(best):
            if alike(earlier.item.text, one.item.text):
                first, second = sorted((earlier, one), key=lambda each: each.place)
                sources = tuple(dict.fromkeys(first.item.sources + second.item.sources))
                best[place] = earlier._replace(item=earlier.item.model_copy(update={"sources": sources}))
                break
        else:
            if len(best) < most and not any(alike(one.item.text, text) for text in said):
                best.append(one)
    said += [one.item.text for one in best]
    return tuple(one.item for one in sorted(best, key=lambda one: one.place))


class Wording:
    """A text that is compared with others: its words that have a meaning, and its form in lower case."""

    __slots__ = ("folded", "words")

    def __init__(self, text: str) -> None:
        self.folded, self.words = trimmed(text).casefold(), content(text)

    def alike(self, other: Wording) -> bool:
        """True if two texts say the same, or one includes the other."""
        fewer = min(len(self.words), len(other.words))
        return self.folded == other.folded or (fewer > 1 and len(self.words & other.words) >= NEAR * fewer)


def alike(one: str, other: str) -> bool:
    """True if two texts say the same, or one includes the other."""
    return Wording(one).alike(Wording(other))
