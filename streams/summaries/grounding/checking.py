"""Checks a model's summary against the conversation: lines that no message holds are removed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import tzinfo
from typing import Final, NamedTuple, TypeVar

from schemas.settings.agents import SummaryLanguage
from schemas.summaries import (
    MOST_TOPICS,
    TITLE_CHARS,
    Decision,
    Insight,
    Preference,
    Problem,
    Summary,
    Todo,
    Topic,
)
from streams.summaries.grounding.spoken_day import Fault, SpokenDay
from streams.summaries.rules.sentences import shortened, trimmed
from streams.summaries.rules.talk import alike
from streams.summaries.rules.turns import Turn

Item = TypeVar("Item", Topic, Preference, Decision, Todo, Problem, Insight)

ITEM_CHARS: Final = 500
"""Maximum number of characters of a text of a model. A longer text is more than a sentence, so it is cut."""

_TEXTS: Final = frozenset({"title", "text"})
"""The fields that a line cannot do without. Others, such as a reason, are emptied if no message holds them."""


class Grounded(NamedTuple):
    """What is left of a model's summary, and how many of its texts were cut for which reason."""

    summary: Summary
    cut: Mapping[Fault, int]


def grounded(summary: Summary, turns: Sequence[Turn], zone: tzinfo, language: SummaryLanguage) -> Grounded:
    """Remove what no message holds, as far as a comparison of words can tell, and repetitions.

    An item must cite a message, and state no number, time or name that is in no message (`SpokenDay`). If the cited
    messages have none of its words, it cites the message that has most of them. Each text is put on one line. The
    title of a topic is shortened; its turns are those of its sources, and those of its own turn numbers that exist.
    Nothing is twice in a section or in two sections; but topics may name what is in a section.
    """
    check = _Check(turns, zone, language)
    found = Summary(
        problems=check.held(summary.problems),
        preferences=check.held(summary.preferences),
        decisions=check.held(summary.decisions),
        todos=check.held(summary.todos),
        insights=check.held(summary.insights),
        topics=check.topics(summary.topics),
    )
    return Grounded(found, check.cut)


class _Check:
    def __init__(self, turns: Sequence[Turn], zone: tzinfo, language: SummaryLanguage) -> None:
        self._turn_of = {message.message_id: turn.number for turn in turns for message in turn.messages}
        self._day = SpokenDay(turns, zone, language)
        self._said: list[str] = []
        self.cut: Counter[Fault] = Counter()

    def topics(self, topics: Iterable[Topic]) -> tuple[Topic, ...]:
        numbers = set(self._turn_of.values())
        return tuple(
            topic.model_copy(
                update={
                    "turns": tuple(sorted(numbers & {*topic.turns, *map(self._turn_of.__getitem__, topic.sources)}))
                }
            )
            for topic in self._section(topics)[:MOST_TOPICS]
        )

    def held(self, items: Iterable[Item]) -> tuple[Item, ...]:
        """Return the items of a section that messages hold, and that no earlier section has."""
        kept = []
        for item in self._section(items):
            if any(alike(_text_of(item), said) for said in self._said):
                self.cut[Fault.REPEATED] += 1
            else:
                kept.append(item)
        self._said += map(_text_of, kept)
        return tuple(kept)

    def _section(self, items: Iterable[Item]) -> list[Item]:
        held: dict[str, Item] = {}
        for item in items:
            if (found := self._item(item)) is None:
                continue
            key = trimmed(_text_of(found)).casefold()
            if key in held:
                self.cut[Fault.REPEATED] += 1
            else:
                held[key] = found
        return list(held.values())

    def _item(self, item: Item) -> Item | None:
        """Return an item as the messages hold it; None if they do not hold it, or if it has no text."""
        texts = {name: _one_line(value) for name, value in item if isinstance(value, str)}
        if isinstance(item, Topic):
            texts["title"] = shortened(texts["title"], TITLE_CHARS)
        sources = tuple(dict.fromkeys(source for source in item.sources if source in self._turn_of))
        if not all(trimmed(texts[name]) for name in _TEXTS & texts.keys()):
            return None
        if not sources:
            self.cut[Fault.SOURCE] += 1
            return None
        for name, text in texts.items():
            fault = self._day.fault_of(text, sources)
            if fault:
                self.cut[fault] += 1
                if name in _TEXTS:
                    return None
                texts[name] = ""
        text = texts["title" if isinstance(item, Topic) else "text"]
        return item.model_copy(update={**texts, "sources": self._day.sources_of(text, sources)})


def _text_of(item: Topic | Preference | Decision | Todo | Problem | Insight) -> str:
    return item.title if isinstance(item, Topic) else item.text


def _one_line(text: str) -> str:
    """Return the text as one line of at most `ITEM_CHARS` characters.

    Line breaks and invisible characters, such as bidi control characters, are replaced by spaces.
    """
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return line if len(line) <= ITEM_CHARS else f"{line[: ITEM_CHARS - 1].rstrip()}…"
