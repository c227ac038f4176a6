"""Checks a model's summary against the conversation: items that cite no existing message are removed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

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
from streams.summaries.rules.sentences import shortened, trimmed
from streams.summaries.rules.turns import Turn

Item = TypeVar("Item", Topic, Preference, Decision, Todo, Problem, Insight)


def grounded(summary: Summary, turns: Sequence[Turn]) -> Summary:
    """Remove items without a source in the turns, empty items and repetitions. Put each text on one line.

    The title of a topic is shortened. The turns of a topic are the turns of its sources, and those of its own turn
    numbers that exist. The checks do not prove that an item is true, because the message that it cites may say
    something else.
    """
    turn_of = {message.message_id: turn.number for turn in turns for message in turn.messages}
    return Summary(
        topics=_held([_topic(topic, turn_of) for topic in summary.topics], turn_of)[:MOST_TOPICS],
        preferences=_held(summary.preferences, turn_of),
        decisions=_held(summary.decisions, turn_of),
        todos=_held(summary.todos, turn_of),
        problems=_held(summary.problems, turn_of),
        insights=_held(summary.insights, turn_of),
    )


def _topic(topic: Topic, turn_of: Mapping[str, int]) -> Topic:
    numbers = {number for number in topic.turns if number in set(turn_of.values())}
    numbers.update(turn_of[source] for source in topic.sources if source in turn_of)
    title = shortened(_one_line(topic.title), TITLE_CHARS)
    return topic.model_copy(update={"title": title, "turns": tuple(sorted(numbers))})


def _held(items: Iterable[Item], turn_of: Mapping[str, int]) -> tuple[Item, ...]:
    """Return the items that have a text and an existing source, without repetitions.

    Sources that do not exist are removed from the items.
    """
    held: dict[str, Item] = {}
    for item in items:
        texts = {name: _one_line(value) for name, value in item if isinstance(value, str)}
        sources = tuple(dict.fromkeys(source for source in item.sources if source in turn_of))
        said = trimmed(texts["title" if isinstance(item, Topic) else "text"]).casefold()
        if said and sources:
            held.setdefault(said, item.model_copy(update={**texts, "sources": sources}))
    return tuple(held.values())


def _one_line(text: str) -> str:
    return " ".join(text.split())
