"""The sentences of a day's conversation, its lines, and the selection of items."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import islice
from typing import Final, Generic, NamedTuple, TypeVar

from schemas.summaries import Decision, Insight, Preference, Problem, Todo
from streams.summaries.rules.embedding import Remembered, encoder
from streams.summaries.rules.kinds import Kind
from streams.summaries.rules.lines import Line, lines
from streams.summaries.rules.sentences import Sentence, content, neighbours, sentences_of, trimmed
from streams.summaries.rules.turns import Turn

NEAR: Final = 0.8
"""If the longer of two items has at least this share of the shorter one's words, the shorter one says nothing new."""


MOST_CLAUSES: Final = 6_000
"""Maximum number of clauses of a day that are read, the last ones. It takes some six seconds."""


class Talk:
    """The sentences and the lines of a day; of a very long day, those of its end.

    `embed` is None if texts are not embedded, or the extra `embedded` is not installed.
    """

    def __init__(self, turns: Iterable[Turn], *, embedded: bool = True) -> None:
        embed = encoder() if embedded else None
        self.embed: Final = Remembered(embed) if embed else None
        self.sentences: Final = _last(sentences_of(turns))
        self.lines: Final[list[Line]] = lines(self.sentences, self.embed)
        self._before, _ = neighbours(self.sentences)
        self._idle: dict[tuple[int, int], bool] = {}

    @cached_property
    def lines_at(self) -> dict[int, list[Line]]:
        """The lines of each sentence, by its index."""
        found: dict[int, list[Line]] = {}
        for line in self.lines:
            found.setdefault(line.place, []).append(line)
        return found

    def of(self, kind: Kind) -> list[Line]:
        """Return the lines of a kind."""
        return [line for line in self.lines if line.kind == kind]

    def accepted(self, kind: Kind) -> list[Line]:
        """Return the lines of a kind, without what the assistant says and the user's next message refuses."""
        answers = ((line, self._answer(line)) for line in self.of(kind))
        return [line for line, said in answers if said is None or not said.cues.refuses.match(said.text)]

    def sources(self, line: Line) -> tuple[str, ...]:
        """Return the messages of a line: its own and, if it is the assistant's, the one in which the user answers."""
        answer = self._answer(line)
        return (line.message_id, answer.message.message_id) if answer else (line.message_id,)

    def before(self, line: Line) -> Sentence | None:
        """Return the last sentence of the message before that of a line; None if there is none in its session."""
        place = self._before[line.place]
        return None if place is None else self.sentences[place]

    def _answer(self, line: Line) -> Sentence | None:
        """Return the first sentence of the user after a line of the assistant; None for the user's own lines."""
        if line.sentence.by_user:
            return None
        session = line.sentence.turn.session_id
        later = islice(self.sentences, line.place + 1, None)
        return next((one for one in later if one.by_user and one.turn.session_id == session), None)

    def idle(self, place: int, clause: int) -> bool:
        """True if the clause is small talk."""
        known = self._idle.get((place, clause))
        if known is None:
            sentence = self.sentences[place]
            known = self._idle[place, clause] = sentence.cues.idle.search(sentence.opened[clause]) is not None
        return known


def _last(sentences: Sequence[Sentence]) -> Sequence[Sentence]:
    """Return the sentences of the last `MOST_CLAUSES` clauses."""
    first, left = len(sentences), MOST_CLAUSES
    while first and len(sentences[first - 1].clauses) <= left:
        first -= 1
        left -= len(sentences[first].clauses)
    return sentences[first:]


Item = TypeVar("Item", Preference, Decision, Todo, Problem, Insight)


class Found(NamedTuple, Generic[Item]):
    """An item, its worth for the summary, and where it begins: (index of a sentence, index of its clause)."""

    item: Item
    worth: float
    place: tuple[int, int]


def kept(found: Iterable[Found[Item]], most: int, said: list[str]) -> tuple[Item, ...]:
    """Return at most `most` items: the items with the highest worth, in the order of the day.

    A repetition of an item is not returned, but its sources are added to that item. What another section says, in
    `said`, is not repeated; the texts of the returned items are added to it.
    """
    best: list[Found[Item]] = []
    for one in sorted(found, key=lambda one: (-one.worth, one.place)):
        for place, earlier in enumerate(best):
            if alike(earlier.item.text, one.item.text):
                best[place] = united(earlier, one)
                break
        else:
            if len(best) < most and not any(alike(one.item.text, text) for text in said):
                best.append(one)
    said += [one.item.text for one in best]
    return tuple(one.item for one in sorted(best, key=lambda one: one.place))


def united(one: Found[Item], again: Found[Item]) -> Found[Item]:
    """Return an item with the sources of its repetition, in the order of the day."""
    first, second = sorted((one, again), key=lambda each: each.place)
    sources = tuple(dict.fromkeys(first.item.sources + second.item.sources))
    return one._replace(item=one.item.model_copy(update={"sources": sources}))


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
