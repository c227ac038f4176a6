"""Merges the summaries of a day into one, by the rules of a single summary, without a model."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from datetime import date
from statistics import multimode
from typing import Final, Generic, NamedTuple, TypeVar
from zoneinfo import ZoneInfo

from schemas.settings.agents import SummaryLanguage
from schemas.summaries import MOST_TOPICS, Decision, Insight, Preference, Problem, Summary, Todo, Topic
from streams.summaries.rules.extracting import MOST_ITEMS
from streams.summaries.rules.labels import Language
from streams.summaries.rules.parsing import Parsed, parsed
from streams.summaries.rules.rendering import TurnsOf, rendered_day
from streams.summaries.rules.talk import NEAR, Wording

Listed = TypeVar("Listed", Preference, Decision, Todo, Problem, Insight)
Item = TypeVar("Item", Topic, Preference, Decision, Todo, Problem, Insight)

#: Fields of which the last one that is not empty is kept: it may correct an earlier one.
_ADDED: Final = ("reason", "when", "solution")
#: Fields that are true only if they are true in all repetitions of an item.
_DOUBTS: Final = ("observed", "inferred")


class MergedDay(NamedTuple):
    """The summary of a day. The topics of `summary` have no turns of their own: `turns` has those of each topic.

    `summaries` is the number of summaries of which it is made. `further` is the number of items and topics that only
    those have, because there are more than a section may have.
    """

    summary: Summary
    turns: tuple[tuple[TurnsOf, ...], ...]
    summaries: int
    further: int


class _Said(NamedTuple, Generic[Item]):
    """An item, the wording of its text or title, and where it is: `at` is (number of the summary, place in it)."""

    item: Item
    wording: Wording
    at: tuple[int, int]


#: Items that say the same. The first one has the text that is kept.
_Same = list[_Said[Item]]


def day_merged(
    texts: Sequence[str], *, language: SummaryLanguage, written_at: int, timezone: ZoneInfo, day: date
) -> str:
    """Return the Markdown of the day's summary, made of the texts of its summaries; "" if the day needs none.

    With the language `auto`, it has the titles that most of the summaries have.
    """
    read = [parsed(text) for text in texts]
    found = merged(read)
    if found is None:
        return ""
    languages: list[Language] = multimode(one.language for one in read if one.language is not None)
    return rendered_day(
        found.summary,
        found.turns,
        language=language if language != "auto" else languages[-1] if languages else "en",
        written_at=written_at,
        timezone=timezone,
        day=day,
        summaries=found.summaries,
        further=found.further,
    )


def merged(summaries: Sequence[Parsed]) -> MergedDay | None:
    """Merge a day's summaries, which are in the order of the day.

    Each section has its items in that order, without repetitions, and not more of them than a single summary. Return
    None if fewer than two summaries have any items: the result would only repeat them.
    """
    day = [one.summary for one in summaries]
    if sum(any(items for _, items in one) for one in day) < 2:
        return None
    done = {Wording(todo.text).folded for one in summaries for todo in one.done}
    topics, turns, more_topics = _topics([one.topics for one in day])
    preferences, more_preferences = _section([one.preferences for one in day])
    decisions, more_decisions = _section([one.decisions for one in day])
    todos, more_todos = _section([one.todos for one in day], done)
    problems, more_problems = _section([one.problems for one in day])
    insights, more_insights = _section([one.insights for one in day])
    return MergedDay(
        Summary(
            topics=topics,
            preferences=preferences,
            decisions=decisions,
            todos=todos,
            problems=problems,
            insights=insights,
        ),
        turns,
        len(summaries),
        more_topics + more_preferences + more_decisions + more_todos + more_problems + more_insights,
    )


def _section(sections: Sequence[Sequence[Listed]], done: Container[str] = ()) -> tuple[tuple[Listed, ...], int]:
    """Return the items of a section, and the number of items for which there is no room.

    Items that someone stated go before doubtful ones, and then those that most summaries have. Of repetitions, the
    longest text is kept, because it includes the others; of equally long ones the last, which may correct them.
    """
    said = [one for one in _numbered(sections) if one.wording.folded not in done]
    said.sort(key=lambda one: (-len(one.wording.words), *(-number for number in one.at)))
    groups = _grouped(said, _same_words)
    groups.sort(key=lambda group: (_doubtful(group), -len({one.at[0] for one in group}), _first(group)))
    kept = sorted(groups[:MOST_ITEMS], key=_first)
    return tuple(_united(group) for group in kept), len(groups) - len(kept)


def _grouped(said: Iterable[_Said[Item]], same: Callable[[_Same[Item], _Said[Item]], bool]) -> list[_Same[Item]]:
    """Return groups of items that say the same. An item joins the first group that is the `same`.

    Only groups that share a word or a message with the item are looked at, because a day may have thousands of items.
    """
    groups: list[_Same[Item]] = []
    having: defaultdict[str, set[int]] = defaultdict(set)
    for one in said:
        keys = _keys(one)
        near = sorted({place for key in keys for place in having.get(key, ())})
        joined = next((place for place in near if same(groups[place], one)), len(groups))
        if joined == len(groups):
            groups.append([])
        groups[joined].append(one)
        for key in keys:
            having[key].add(joined)
    return groups


def _keys(one: _Said[Item]) -> list[str]:
    """Return keys of which two items that are the same have at least one in common."""
    return [*one.wording.words, f"={one.wording.folded}", *(f"@{source}" for source in one.item.sources)]


def _same_words(group: _Same[Item], other: _Said[Item]) -> bool:
    return group[0].wording.alike(other.wording)


def _united(group: _Same[Listed]) -> Listed:
    """Return the item of a group, with the sources of all, in the order of the day."""
    item = group[0].item
    in_order = [one.item for one in sorted(group, key=lambda one: one.at)]
    fields: dict[str, object] = {"sources": _sources(group)}
    for name, value in item:
        if name in _ADDED:
            fields[name] = next(filter(None, (getattr(other, name) for other in in_order[::-1])), "")
        elif name in _DOUBTS:
            fields[name] = all(getattr(other, name) for other in in_order)
        elif isinstance(value, bool):
            fields[name] = any(getattr(other, name) for other in in_order)
    return item.model_copy(update=fields)


def _doubtful(group: _Same[Listed]) -> bool:
    """True if the item is observed or inferred in all of the group."""
    return any(all(getattr(one.item, name, False) for one in group) for name in _DOUBTS)


def _topics(sections: Sequence[Sequence[Topic]]) -> tuple[tuple[Topic, ...], tuple[tuple[TurnsOf, ...], ...], int]:
    """Return the topics of which most messages speak, in the order of the day; their turns; and the number of others.

    Topics are the same if their titles are alike, or if nearly all messages of one are among those of the other. The
    title of the larger one is kept.
    """
    said = sorted(_numbered(sections), key=lambda one: (-len(one.item.sources), one.at))
    groups = _grouped(said, _same_topic)
    groups.sort(key=lambda group: (-len(_sources(group)), _first(group)))
    kept = sorted(groups[:MOST_TOPICS], key=_first)
    topics = [group[0].item.model_copy(update={"sources": _sources(group), "turns": ()}) for group in kept]
    return tuple(topics), tuple(tuple(_turns(group)) for group in kept), len(groups) - len(kept)


def _same_topic(group: _Same[Topic], smaller: _Said[Topic]) -> bool:
    """True if a topic is that of the group. Two topics of one summary are not the same for their messages alone."""
    return group[0].wording.alike(smaller.wording) or any(
        one.at[0] != smaller.at[0] and _among(smaller.item.sources, one.item.sources) for one in group
    )


def _among(sources: Sequence[str], others: Sequence[str]) -> bool:
    """True if there are sources, and nearly all of them are among the others."""
    few = set(sources)
    return len(few) > 0 and len(few.intersection(others)) >= NEAR * len(few)


def _turns(group: _Same[Topic]) -> Iterator[TurnsOf]:
    turns: defaultdict[int, set[int]] = defaultdict(set)
    for one in group:
        turns[one.at[0]].update(one.item.turns)
    for number, numbers in sorted(turns.items()):
        if numbers:
            yield TurnsOf(number, tuple(sorted(numbers)))


def _numbered(sections: Sequence[Sequence[Item]]) -> Iterator[_Said[Item]]:
    for number, items in enumerate(sections, 1):
        for place, item in enumerate(items):
            yield _Said(item, Wording(item.title if isinstance(item, Topic) else item.text), (number, place))


def _sources(group: _Same[Item]) -> tuple[str, ...]:
    """Return the messages of a group, each once, in the order of the day."""
    in_order = sorted(group, key=lambda one: one.at)
    return tuple(dict.fromkeys(source for one in in_order for source in one.item.sources))


def _first(group: _Same[Item]) -> tuple[int, int]:
    return min(one.at for one in group)
