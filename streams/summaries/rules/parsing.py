"""Parses rendered summaries: the inverse of `rendering`. A person may have edited the text meanwhile."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple
from urllib.parse import unquote

from schemas.summaries import Decision, Insight, Preference, Problem, Summary, Todo, Topic
from streams.summaries.rules.labels import LABELS, Language

_TITLE: Final = re.compile(r"#+\s+(\S.*)")
_ITEM: Final = re.compile(
    r"[-*+]\s+(?:\[(?P<box>[ xX])\]\s+)?(?P<text>.*?)(?:\s*<!-- sources: (?P<ids>[^>]*?)\s*-->)?\s*"
)
_BELOW: Final = re.compile(r"\s+[-*+]\s+(?P<text>.*?)\s*")
_MARK: Final = re.compile(r"\*\*(?P<mark>[^*]+)\*\*(?:：|:\s*)(?P<text>.*)")
_WHEN: Final = re.compile(r"(?P<text>.*\S)(?:\s+\((?P<one>[^()]+)\)|\s*（(?P<other>[^（）]+)）)")
_RANGE: Final = re.compile(r"(\d{1,6})(?:–(\d{1,6}))?")
_ESCAPED: Final = re.compile(r"\\([!-/:-@\[-`{-~])|&(lt|amp);")

#: Maximum number of turns that are read from a range such as "1–3". No summary reads more messages.
_MOST_TURNS: Final = 1_000


class Parsed(NamedTuple):
    """A summary of a file. `language` is that of its titles; None if no title is known.

    `done` are tasks that a person has ticked. They are not in the summary.
    """

    summary: Summary
    language: Language | None = None
    done: tuple[Todo, ...] = ()


class _Line(NamedTuple):
    """An item of a list, as it is written: `text` is escaped, `below` are its marked lines, such as the reason."""

    text: str
    sources: tuple[str, ...]
    ticked: bool
    below: list[str]

    @property
    def marked(self) -> tuple[str, str]:
        """The mark of the text, and the text without it, no longer escaped."""
        found = _MARK.fullmatch(self.text)
        return (found["mark"], plain(found["text"])) if found else ("", plain(self.text))

    @property
    def added(self) -> str:
        """The text of the first line below the item, without its mark; "" if there is none."""
        if not self.below:
            return ""
        found = _MARK.fullmatch(self.below[0])
        return plain(found["text"] if found else self.below[0])


def parsed(text: str) -> Parsed:
    """Parse the text of a summary. Lines that are in no section, and lines that are no items, are passed over.

    Items that a person added have no sources.
    """
    sections: dict[str, list[_Line]] = {name: [] for name in _SECTIONS}
    language: Language | None = None
    section: list[_Line] = []
    for line in text.splitlines():
        if title := _TITLE.fullmatch(line):
            name = _BY_EMOJI.get(title[1][0])
            section = sections[name] if name else []
            language = language or _LANGUAGES.get(title[1].strip())
        elif (below := _BELOW.fullmatch(line)) and section:
            section[-1].below.append(below["text"])
        elif item := _ITEM.fullmatch(line):
            section.append(_Line(item["text"], _ids(item["ids"] or ""), (item["box"] or " ") != " ", []))
    tasks = [(_todo(line), line.ticked) for line in sections["todos"]]
    summary = Summary(
        topics=tuple(_topic(line) for line in sections["topics"]),
        preferences=tuple(
            Preference(text=text, observed=mark in _OBSERVED, sources=line.sources)
            for line, mark, text in _marked(sections["preferences"])
        ),
        decisions=tuple(
            Decision(text=text, reason=line.added, technical=mark in _TECHNICAL, sources=line.sources)
            for line, mark, text in _marked(sections["decisions"])
        ),
        todos=tuple(todo for todo, ticked in tasks if not ticked),
        problems=tuple(
            Problem(text=text, solution=line.added, sources=line.sources)
            for line, _, text in _marked(sections["problems"])
        ),
        insights=tuple(Insight(text=text, sources=line.sources) for line, _, text in _marked(sections["insights"])),
    )
    return Parsed(_with_text(summary), language, tuple(todo for todo, ticked in tasks if ticked))


def plain(markdown: str) -> str:
    """Return the text of an escaped line: the inverse of `safe`."""
    text = _ESCAPED.sub(lambda found: found[1] or {"lt": "<", "amp": "&"}[found[2]], markdown)
    return " ".join(text.split())


def _topic(line: _Line) -> Topic:
    for pattern in _TURNS:
        if found := pattern.fullmatch(line.text):
            return Topic(title=plain(found[1]), turns=tuple(_numbers(found[2])), sources=line.sources)
    return Topic(title=plain(line.text), sources=line.sources)


def _todo(line: _Line) -> Todo:
    mark = _MARK.fullmatch(line.text)
    written = mark["text"] if mark else line.text
    when = _WHEN.fullmatch(written)
    return Todo(
        text=plain(when["text"] if when else written),
        when=plain(when["one"] or when["other"]) if when else "",
        inferred=mark is not None and mark["mark"] in _INFERRED,
        sources=line.sources,
    )


def _marked(lines: list[_Line]) -> Iterator[tuple[_Line, str, str]]:
    for line in lines:
        yield (line, *line.marked)


def _with_text(summary: Summary) -> Summary:
    """Return the summary without items that have no text."""
    kept = {
        name: tuple(one for one in items if getattr(one, "title", None) or getattr(one, "text", None))
        for name, items in summary
    }
    return Summary(**kept)


def _ids(comment: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(unquote(one) for one in comment.split()))


def _numbers(text: str) -> Iterator[int]:
    """Yield the numbers of ranges: 1, 2, 3, 7 for "1–3, 7"."""
    left = _MOST_TURNS
    for first, last in _RANGE.findall(text):
        numbers = range(int(first), int(last or first) + 1)[:left]
        left -= len(numbers)
        yield from numbers


def _pattern(label: str) -> re.Pattern[str]:
    before, _, after = label.partition("{}")
    return re.compile(rf"(.*\S)\s*{re.escape(before.strip())}([\d–,、 ]+){re.escape(after)}")


def _names(*names: str) -> frozenset[str]:
    return frozenset(getattr(labels, name) for labels in LABELS.values() for name in names)


_SECTIONS: Final = tuple(Summary.model_fields)
_TITLES: Final[dict[str, list[tuple[Language, str]]]] = {
    name: [(language, getattr(labels, name)) for language, labels in LABELS.items()] for name in _SECTIONS
}
#: The sections by the first character of their titles, which is the same in all languages.
_BY_EMOJI: Final = {title[0]: name for name, titles in _TITLES.items() for _, title in titles}
_LANGUAGES: Final[dict[str, Language]] = {
    title: language for titles in _TITLES.values() for language, title in titles
}
_TURNS: Final = tuple(
    dict.fromkeys(_pattern(label) for labels in LABELS.values() for label in (labels.turn, labels.turns))
)
_OBSERVED, _TECHNICAL, _INFERRED = _names("observed"), _names("technical"), _names("inferred")
