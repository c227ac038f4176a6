"""Renders a summary as Markdown: the text that one run appends to the file of its day."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from itertools import pairwise
from typing import Final, Literal, NamedTuple, TypeVar
from urllib.parse import quote
from zoneinfo import ZoneInfo

from schemas.summaries import Decision, Insight, Preference, Problem, Summary, Todo, Topic
from streams.summaries.rules.labels import LABELS, Labels, Language

Reason = Literal["count", "manual", "day_end"]
Said = TypeVar("Said", Preference, Decision, Todo, Problem, Insight)


class TurnsOf(NamedTuple):
    """Turns of a topic in one of the summaries of a day: each summary counts its turns from 1.

    `summary` is the number of the summary in the day's file: the first one is 1.
    """

    summary: int
    turns: tuple[int, ...]


_ACTIVE: Final = re.compile(
    r"\\(?=[!-/:-@\[-`{-~])"  # a backslash that would escape the next character
    r"|[`*\[\]~]|(?<![^\W_])_|_(?![^\W_])"  # marks of code, emphasis, links, images
    r"|^[#>+-]"
)
_NUMBERED: Final = re.compile(r"^(\d{1,9})([.)])")
_MARKUP: Final = re.compile(r"<(?=[A-Za-z/!?])|&(?=#?\w+;)")
_TURNING: Final = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Bidi control characters, which change the direction of the text of a line."""


def rendered(
    summary: Summary,
    *,
    language: Language,
    written_at: int,
    timezone: ZoneInfo,
    reason: Reason,
    headed: date | None,
    left_out: int = 0,
) -> str:
    """Return the Markdown of one run: six sections, then the time of writing, `written_at` (epoch ms).

    If `headed` is the day of the summary, the text begins with a heading. If it is None, the text has no heading, and
    can be appended to a file. Each item ends with the percent-encoded ids of its messages, `<!-- sources: … -->`. A
    user's text cannot open a comment. `left_out` is the number of older messages that were not read.
    """
    labels = LABELS[language]
    trigger = {"count": labels.by_count, "manual": labels.manual, "day_end": labels.day_end}[reason]
    facts = {labels.trigger: trigger} | ({labels.left_out: str(left_out)} if left_out else {})
    turns = [_turns(topic.turns, labels) for topic in summary.topics]
    return _text(summary, turns, labels, _made(facts, written_at, timezone, labels), headed)


def rendered_day(
    summary: Summary,
    turns: Sequence[Sequence[TurnsOf]],
    *,
    language: Language,
    written_at: int,
    timezone: ZoneInfo,
    day: date,
    summaries: int,
    further: int,
) -> str:
    """Return the Markdown of a whole day's summary, with a heading.

    `turns` has the turns of each topic. `summaries` is the number of summaries of which it is made, and `further` the
    number of items that only those summaries have.
    """
    labels = LABELS[language]
    facts = {labels.summaries: str(summaries)} | ({labels.further: str(further)} if further else {})
    return _text(
        summary,
        [_turns_of(one, labels) for one in turns],
        labels,
        _made(facts, written_at, timezone, labels),
        day,
    )


def _text(summary: Summary, turns: Sequence[str], labels: Labels, made: str, headed: date | None) -> str:
    topics = [_topic(one, said_in) for one, said_in in zip(summary.topics, turns, strict=True) if safe(one.title)]
    parts = [
        _section(labels.topics, topics, labels),
        _section(labels.preferences, [_preference(one, labels) for one in _said(summary.preferences)], labels),
        _section(labels.decisions, [_decision(one, labels) for one in _said(summary.decisions)], labels),
        _section(labels.todos, [_todo(one, labels) for one in _said(summary.todos)], labels),
        _section(labels.problems, [_problem(one, labels) for one in _said(summary.problems)], labels),
        _section(labels.insights, [_insight(one) for one in _said(summary.insights)], labels),
        made,
    ]
    if headed:
        parts.insert(0, f"# {labels.heading} {headed.isoformat()}")
    return "\n\n".join(parts)


def _made(facts: Mapping[str, str], written_at: int, timezone: ZoneInfo, labels: Labels) -> str:
    """Return the last line: the time of writing, and the facts about the summary."""
    at = datetime.fromtimestamp(written_at / 1000, timezone).isoformat(" ", "seconds")
    told = "".join(f" · {name}{labels.colon}{fact}" for name, fact in facts.items())
    return f"**{labels.generated}**{labels.colon}{at}{told}\n"


def safe(text: str) -> str:
    """Return a text as one line of Markdown that is displayed literally.

    The line cannot begin or contain markup, a comment, a heading or a list.
    """
    line = " ".join(text.split())
    line = "".join(char for char in line if unicodedata.category(char) not in ("Cc", "Cs") and char not in _TURNING)
    line = _ACTIVE.sub(r"\\\g<0>", line)
    line = _NUMBERED.sub(r"\1\\\2", line)
    return _MARKUP.sub(lambda found: "&lt;" if found[0] == "<" else "&amp;", line)


def _said(items: Iterable[Said]) -> list[Said]:
    """Return the items that have a text. Other items would be displayed as empty list items."""
    return [item for item in items if safe(item.text)]


def _section(title: str, items: Sequence[str], labels: Labels) -> str:
    return f"## {title}\n\n{chr(10).join(items) or labels.none}"


def _sources(ids: Sequence[str]) -> str:
    """Return a Markdown comment with the sources of an item.

    Also `--` is percent-encoded, because not all parsers allow it in a comment.
    """
    if not ids:  # a person added the item to a file
        return ""
    encoded = (quote(one, safe="", errors="replace").replace("--", "-%2D") for one in ids)
    return f" <!-- sources: {' '.join(encoded)} -->"


def _marked(mark: str, text: str, labels: Labels) -> str:
    return f"**{mark}**{labels.colon}{safe(text)}"


def _below(mark: str, text: str, labels: Labels) -> str:
    """Return the Markdown line for a text that belongs to the item above, or "" if the text is empty."""
    return f"\n  - {_marked(mark, text, labels)}" if safe(text) else ""


def _topic(topic: Topic, turns: str) -> str:
    return f"- {safe(topic.title)}{turns}{_sources(topic.sources)}"


def _turns(turns: Sequence[int], labels: Labels) -> str:
    if not turns:
        return ""
    return (labels.turn if len(turns) == 1 else labels.turns).format(_numbers(turns, labels))


def _turns_of(turns: Sequence[TurnsOf], labels: Labels) -> str:
    if not turns:
        return ""
    patterns = (labels.turn_of if len(one.turns) == 1 else labels.turns_of for one in turns)
    told = (
        pattern.format(one.summary, _numbers(one.turns, labels)) for pattern, one in zip(patterns, turns, strict=True)
    )
    return labels.when.format(labels.semicolon.join(told))


def _numbers(turns: Sequence[int], labels: Labels) -> str:
    return labels.comma.join(_runs(sorted(set(turns))))


def _runs(numbers: Sequence[int]) -> Iterator[str]:
    """Yield numbers as ranges: "1–3" and "7" for 1, 2, 3, 7."""
    starts = [
        0,
        *(place for place, (one, other) in enumerate(pairwise(numbers), 1) if other != one + 1),
        len(numbers),
    ]
    for start, end in pairwise(starts):
        first, last = numbers[start], numbers[end - 1]
        yield str(first) if first == last else f"{first}–{last}"


def _preference(preference: Preference, labels: Labels) -> str:
    mark = labels.observed if preference.observed else labels.preference
    return f"- {_marked(mark, preference.text, labels)}{_sources(preference.sources)}"


def _decision(decision: Decision, labels: Labels) -> str:
    mark = labels.technical if decision.technical else labels.decision
    line = f"- {_marked(mark, decision.text, labels)}{_sources(decision.sources)}"
    return line + _below(labels.reason, decision.reason, labels)


def _todo(todo: Todo, labels: Labels) -> str:
    text = _marked(labels.inferred, todo.text, labels) if todo.inferred else safe(todo.text)
    when = labels.when.format(safe(todo.when)) if safe(todo.when) else ""
    return f"- [ ] {text}{when}{_sources(todo.sources)}"


def _problem(problem: Problem, labels: Labels) -> str:
    line = f"- {_marked(labels.problem, problem.text, labels)}{_sources(problem.sources)}"
    return line + _below(labels.solution, problem.solution, labels)


def _insight(insight: Insight) -> str:
    return f"- {safe(insight.text)}{_sources(insight.sources)}"
