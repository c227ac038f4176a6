"""The sentences of a day's conversation, a record of the clauses that became items, and the selection of items."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, Generic, NamedTuple, TypeVar

from schemas.summaries import Decision, Insight, Preference, Problem, Todo
from streams.language.estimator import told
from streams.summaries.rules.sentences import ITEM_CHARS, Sentence, content, quoted, sentences_of, trimmed
from streams.summaries.rules.turns import Turn

NEAR: Final = 0.8
"""If the longer of two items has at least this share of the shorter one's words, the shorter one says nothing new."""


class Spot(NamedTuple):
    """A clause. `text` is without opening words. `place` is the index of its sentence in the day's sentences."""

    place: int
    clause: int
    sentence: Sentence
    text: str

    def before(self, at: int) -> str:
        """Return the text of the sentence before the character at index `at` of the clause."""
        return "".join(self.sentence.clauses[: self.clause]) + self.text[:at]

    def real(self, at: int) -> bool:
        """True if the text from index `at` on is stated as a fact, in the speaker's own words."""
        return not quoted(self.text, at) and not self.sentence.cues.unreal.search(self.before(at))


class Talk:
    """The sentences of a day. A clause is part of at most one item.

    The first rule that takes a clause decides the kind of the item.
    """

    def __init__(self, turns: Iterable[Turn]) -> None:
        self.sentences: Final = sentences_of(turns)
        self._taken: set[tuple[int, int]] = set()
        self._worths: dict[int, float] = {}
        self._idle: dict[tuple[int, int], bool] = {}

    def spots(self, first: int = 0, last: int | None = None) -> Iterator[Spot]:
        """Yield the statements of both speakers that are not part of an item yet.

        `first` and `last` are indexes of sentences. The sentence at `last` is not included.
        """
        for place, sentence in enumerate(self.sentences[first:last], first):
            if not sentence.code:
                for clause in range(sentence.told):
                    if (place, clause) not in self._taken and (text := sentence.opened[clause]):
                        yield Spot(place, clause, sentence, text)

    def worth(self, place: int) -> float:
        """Return the local estimator's score of the sentence, 0-10."""
        if place not in self._worths:
            self._worths[place] = told(self.sentences[place].text).score
        return self._worths[place]

    def idle(self, place: int, clause: int) -> bool:
        """True if the clause is small talk."""
        known = self._idle.get((place, clause))
        if known is None:
            sentence = self.sentences[place]
            known = self._idle[place, clause] = sentence.cues.idle.search(sentence.opened[clause]) is not None
        return known

    def taken(self, place: int, clause: int | None = None) -> bool:
        """Return whether the clause is part of an item of the summary.

        If `clause` is None, return whether any clause of the sentence is part of an item.
        """
        clauses = range(len(self.sentences[place].clauses)) if clause is None else (clause,)
        return any((place, clause) in self._taken for clause in clauses)

    def take(self, place: int, first: int, last: int) -> None:
        """Record that the clauses of a sentence from index `first` to before `last` are part of an item."""
        self._taken.update((place, clause) for clause in range(first, last))

    def reach(self, spot: Spot) -> int:
        """Return the index of the clause before which an item that begins at `spot` ends.

        The item ends before a new subject, a question, small talk, another item, or a clause that would make it too
        long.
        """
        sentence = spot.sentence
        chars = len(spot.text)
        last = spot.clause + 1
        while last < sentence.told and (spot.place, last) not in self._taken:
            chars += len(sentence.clauses[last])
            led = sentence.clauses[last - 1].rstrip().endswith((":", "："))
            own = not led and sentence.cues.own.match(sentence.clauses[last].lstrip())
            if chars > ITEM_CHARS or own or self.idle(spot.place, last):
                break
            last += 1
        return last


Kind = TypeVar("Kind", Preference, Decision, Todo, Problem, Insight)


class Found(NamedTuple, Generic[Kind]):
    """An item, its worth for the summary, and the index of its sentence in the day's sentences."""

    item: Kind
    worth: float
    place: int


def kept(found: Iterable[Found[Kind]], most: int) -> tuple[Kind, ...]:
    """Return at most `most` items: the items with the highest worth, in the order of the day.

    A repetition of an item is not returned, but its sources are added to that item.
    """
    best: list[Found[Kind]] = []
    for one in sorted(found, key=lambda one: (-one.worth, one.place)):
        for place, earlier in enumerate(best):
            if alike(earlier.item.text, one.item.text):
                sources = tuple(dict.fromkeys(earlier.item.sources + one.item.sources))
                best[place] = earlier._replace(item=earlier.item.model_copy(update={"sources": sources}))
                break
        else:
            if len(best) < most:
                best.append(one)
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


def message_before(talk: Talk, place: int) -> tuple[int, int]:
    """Return the range of sentences (first, end) of the message before the message of the sentence at `place`.

    The range is empty if the session has no earlier message, or if a message of another session comes between.
    """
    said = talk.sentences
    last = place
    while last > 0 and said[last - 1].message is said[place].message:
        last -= 1
    first = last
    while first > 0 and said[first - 1].message is said[last - 1].message:
        first -= 1
    return (first, last) if said[first].turn.session_id == said[place].turn.session_id else (last, last)
